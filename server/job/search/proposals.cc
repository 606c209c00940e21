#include "server/job/search/proposals.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/job/actor/executor.h"

namespace hone::job {

absl::StatusOr<std::vector<GivenCandidate>> ReadTraces(const Proposals& proposals,
                                                       const TaskSpaces& spaces, double tolerance,
                                                       const StopCheck& stop) {
  std::vector<GivenCandidate> read;
  for (const std::string& trace : proposals.traces) {
    HONE_RETURN_IF_ERROR(stop());
    if (proposals.check != nullptr) HONE_RETURN_IF_ERROR(proposals.check());
    GivenCandidate& given = read.emplace_back();
    const absl::Status threw = CatchExceptions([&] { given = spaces.ReadTrace(trace, tolerance); });
    if (threw.ok()) continue;
    given = {.refusal = Refusal::kIllegal,
             .why = absl::StrCat("reading it failed: ", threw.message(),
                                 "; this is a defect of Hone: please report the trace")};
  }
  return read;
}

absl::StatusOr<std::shared_ptr<void>> CheckingLimit::Enter(const std::string& caller, int traces) {
  absl::MutexLock lock(&mutex_);
  int& own = of_caller_[caller];
  const bool is_own = own + traces > kMostCheckedOfOne;
  if (is_own || all_ + traces > kMostChecked) {
    const int checked = is_own ? own : all_;
    if (own == 0) of_caller_.erase(caller);
    return absl::ResourceExhaustedError(
        absl::StrCat(checked, " traces ", is_own ? "of this caller " : "",
                     "are being checked, of at most ", is_own ? kMostCheckedOfOne : kMostChecked,
                     "; propose again when earlier calls have been answered"));
  }
  own += traces;
  all_ += traces;
  return std::shared_ptr<void>(nullptr, [this, self = shared_from_this(), caller, traces](void*) {
    absl::MutexLock released(&mutex_);
    all_ -= traces;
    const auto found = of_caller_.find(caller);
    if ((found->second -= traces) == 0) of_caller_.erase(found);
  });
}

void WaitingProposals::Add(int64_t trial, std::string proposer, bool stored) {
  waiting_.push_back({.trial = trial, .proposer = std::move(proposer), .stored = stored});
}

void WaitingProposals::SetStored(int64_t trial) {
  for (Waiting& each : waiting_) {
    if (each.trial == trial) each.stored = true;
  }
}

size_t WaitingProposals::CountOf(const std::string& proposer) const {
  return std::count_if(waiting_.begin(), waiting_.end(),
                       [&](const Waiting& each) { return each.proposer == proposer; });
}

int WaitingProposals::Ready() const {
  const auto end = std::find_if(waiting_.begin(), waiting_.end(),
                                [](const Waiting& each) { return !each.stored; });
  return static_cast<int>(end - waiting_.begin());
}

std::vector<int64_t> WaitingProposals::Take(int n) {
  std::vector<int64_t> trials;
  for (; n > 0; --n) {
    trials.push_back(waiting_.front().trial);
    waiting_.pop_front();
  }
  return trials;
}

int ShareOfProposals(int batch, int64_t proposed) {
  return batch == 1 ? static_cast<int>(proposed % 2) : batch / 2;
}

}  // namespace hone::job

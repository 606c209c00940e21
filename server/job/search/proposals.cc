#include "server/job/search/proposals.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/job/actor/executor.h"

namespace hone::job {

GivenCandidate ReadProposal(const std::string& trace, const TaskSpaces& spaces, double tolerance) {
  GivenCandidate given;
  const absl::Status threw = CatchExceptions([&] { given = spaces.ReadTrace(trace, tolerance); });
  if (threw.ok()) return given;
  return {.refusal = Refusal::kIllegal,
          .why = absl::StrCat("reading it failed: ", threw.message(),
                              "; this is a defect of Hone: please report the trace")};
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

std::string WaitingProposals::WhyFull(const std::string& proposer, size_t added_bytes) const {
  if (added_bytes > kMostAddedBytes) {
    return absl::StrCat("the traces of all programs have ", kMostAddedBytes >> 20,
                        " MiB, apart from their decisions; propose other decisions of one, or "
                        "create another job");
  }
  const size_t own = CountOf(proposer);
  if (own < (size() < kMostWaiting ? kMostWaitingOfOne : kAlwaysMayWait)) return "";
  return absl::StrCat(own < kMostWaitingOfOne ? size() : own,
                      " proposals wait; propose again when some of them are measured");
}

int WaitingProposals::Ready() const {
  return static_cast<int>(std::count_if(waiting_.begin(), waiting_.end(),
                                        [](const Waiting& each) { return each.stored; }));
}

std::vector<int64_t> WaitingProposals::Take(int n) {
  std::vector<int64_t> trials;
  for (; n > 0; --n) {
    auto next = waiting_.end();
    for (auto each = waiting_.begin(); each != waiting_.end(); ++each) {
      if (!each->stored) continue;
      if (next == waiting_.end() || turns_[each->proposer] < turns_[next->proposer]) next = each;
    }
    turns_[next->proposer] = ++turn_;
    trials.push_back(next->trial);
    waiting_.erase(next);
  }
  return trials;
}

absl::Status ProposerNames::Check(const std::string& job, size_t known,
                                  const std::string& caller) const {
  if (known >= kMostProposers) {
    return absl::ResourceExhaustedError(absl::StrCat(
        kMostProposers, " programs have proposed for job ", job, "; use one of their names"));
  }
  const auto own = of_caller_.find(caller);
  if (caller.empty() || own == of_caller_.end() || own->second < kMostProposersOfOne) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("'", caller, "' has proposed for job ", job, " in the names of ", own->second,
                   " programs, which is the limit for one caller; use one of their names"));
}

int ShareOfProposals(int batch, int64_t proposed) {
  return batch == 1 ? static_cast<int>(proposed % 2) : batch / 2;
}

}  // namespace hone::job

// Before a new best is published, another worker of the target runs its bytes: a worker that is
// broken, or lies, must not publish what is wrong.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/task/job.h"
#include "server/task/job_messages.h"
#include "spdlog/spdlog.h"

namespace hone::task {
namespace {

// Interchangeable devices differ by less, disturbances reckoned in.
constexpr double kApart = 3;

}  // namespace

bool Job::IsSpotChecked(int index) {
  Finalist& finalist = finalists_[index];
  SpotCheck& check = finalist.check;
  if (check.over || Steady() < check.deadline) return check.over;
  if (check.deadline != absl::InfinitePast()) {
    // Nobody answered in time; what it finds later changes nothing.
    spdlog::warn("job {}: no other worker checked trial {} in time", id_, finalist.trial);
    if (!check.against.empty()) {
      Discard(index, finalist.worker_id, check.why);
      return false;
    }
    return check.over = true;
  }
  std::vector<std::string> besides = check.asked;
  besides.push_back(finalist.worker_id);
  const std::string other = services_.fleet->AnotherRunner(spec_.target_key, besides);
  if (other.empty()) {
    if (!check.against.empty()) {
      Discard(index, finalist.worker_id, check.why);
      return false;
    }
    return check.over = true;
  }
  check.asked.push_back(other);
  check.deadline = Steady() + options_.spot_check_limit;
  SetPhase(absl::StrCat("worker ", other, " checks the winner"));
  ShowState();
  fleet::WorkItem item = MakeItem(finalist.candidate, finalist.space);
  item.policy = finalist.last.policy;
  item.best_latency_ns = nullptr;
  item.artifact_digest = finalist.artifact_digest;
  item.worker_id = other;
  item.avoid = std::move(besides);
  record::Record record = MakeRecord(finalist.candidate, finalist.trial);
  record.policy = item.policy;
  services_.fleet->Submit(
      std::move(item),
      [self = shared_from_this(), index, record = std::move(record)](
          absl::StatusOr<fleet::WorkResult> result, fleet::Acknowledge acknowledge) mutable {
        // An error leaves it to the deadline, and to others.
        if (!result.ok()) return;
        self->Commit(std::move(record), /*event=*/-1, *std::move(result), std::move(acknowledge),
                     [index](Job& job, const record::Record& stored, const std::string& worker) {
                       job.OnSpotCheck(index, stored, worker);
                     });
      });
  return false;
}

void Job::OnSpotCheck(int index, const record::Record& record, const std::string& worker_id) {
  if (state_.state != JobState::kConfirming) return;
  Finalist& finalist = finalists_[index];
  SpotCheck& check = finalist.check;
  if (check.over || Steady() >= check.deadline) return;
  check.deadline = absl::InfinitePast();
  const record::MeasureResult& result = record.result;
  // No opinion: others are asked. A runner that was killed says nothing about the candidate.
  if (result.outcome == record::Outcome::kDeviceLost ||
      result.outcome == record::Outcome::kOutOfMemory) {
    return;
  }
  const double claimed = record::SteadyLatencyNs(confirmation_->Combined(index));
  const double seen = record::SteadyLatencyNs(result);
  std::string why;
  if (result.outcome != record::Outcome::kOk) {
    why = absl::StrCat(finalist.worker_id, " says that it is right, and ", worker_id, " has ",
                       absl::string_view(record::OutcomeName(result.outcome)), ": ", result.detail);
  } else if (seen > kApart * claimed) {
    why = absl::StrFormat("%s says that it takes %.0f ns, and %s measures %.0f ns",
                          finalist.worker_id, claimed, worker_id, seen);
  }
  if (why.empty()) {
    check.over = true;
    // Two against one.
    if (!check.against.empty()) services_.fleet->Flag(check.against, check.why);
    return Publish();
  }
  spdlog::warn("job {}: trial {}: {}", id_, finalist.trial, why);
  if (!check.against.empty()) return Discard(index, finalist.worker_id, check.why);
  check.against = worker_id;
  check.why = std::move(why);
  if (IsSpotChecked(index)) Publish();
}

void Job::Discard(int index, const std::string& liar, const std::string& why) {
  const Finalist& finalist = finalists_[index];
  services_.fleet->Flag(liar, absl::StrCat("another worker found its result wrong: ", why));
  services_.store->Quarantine(workload_.digest, spec_.target_key, finalist.candidate,
                              finalist.last.id, absl::StrCat("another worker disagrees: ", why),
                              Fence(), [self = shared_from_this()](absl::Status status) {
                                if (status.ok()) return;
                                self->PostCall([status](Job& job) { job.OnNotStored(status); });
                              });
  ++state_.quarantined;
  std::erase(ranking_, index);
  artifact_deadline_ = Steady() + options_.artifact_limit;
  if (!ranking_.empty()) return Publish();
  End(JobState::kFailed, absl::FailedPreconditionError(
                             absl::StrCat("no finalist stood up to a second worker: ", why)));
}

}  // namespace hone::task

#include "server/confirm/challenges.h"

#include <map>

#include "common/base/digest.h"
#include "server/confirm/confirm_policy.h"
#include "server/job/search/task_search.h"

namespace hone::job {

void Challenges::Continue() {
  if (job_.state().state != JobState::kRunning || stopping_) return;
  if (leader_.NextChallenger() != nullptr) Measure();
}

void Challenges::Measure() {
  const Screened& challenger = leader_.challenger();
  const record::Record& screened = challenger.record;
  fleet::WorkItem item =
      task_.MakeItem(screened.candidate, task_.SpaceText(screened.candidate.space_digest));
  item.policy = ConfirmPolicy();
  item.best_latency_ns = nullptr;  // a challenger is not stopped early
  item.artifact_digest = screened.result.artifact_digest;
  item.builder = fleet::BuilderOf(screened.environment);
  item.worker_id = challenger.worker_id;
  task_.Measure(
      std::move(item), task_.MakeRecord(screened.candidate, screened.trial), /*event=*/-1,
      record::SteadyLatencyNs(screened.result),
      [this](const record::Record& record, const std::string&) { OnMeasured(record); },
      [this](const absl::Status&) {
        if (job_.state().state == JobState::kRunning && leader_.IsBusy()) Withdraw();
      });
}

void Challenges::OnMeasured(const record::Record& record) {
  if (job_.state().state != JobState::kRunning || !leader_.IsBusy()) return;
  job_.SetDoing("confirming the leader");
  if (record.result.outcome == record::Outcome::kOk && !record.quarantined) {
    screened_.AddProcesses({record});
  }
  if (leader_.Report(record)) on_leader_();
  if (leader_.IsBusy() && !stopping_) return Measure();
  Withdraw();
}

void Challenges::Withdraw() {
  leader_.Withdraw();
  on_done_();
}

void Challenges::Restore(const std::vector<record::Record>& again) {
  std::map<Digest, std::vector<record::Record>> of;  // by candidate
  for (const record::Record& record : again) {
    of[CandidateDigest(record.candidate)].push_back(record);
  }
  for (const auto& [digest, rounds] : of) {
    screened_.AddProcesses(rounds);
    if (!rounds[0].is_default) leader_.Restore(rounds);
  }
}

}  // namespace hone::job

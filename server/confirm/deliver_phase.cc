#include "server/confirm/deliver_phase.h"

#include <algorithm>
#include <utility>

namespace hone::job {

void DeliverPhase::Begin(std::vector<Screened> screened) {
  job_.SetDoing("choosing the best candidate");
  if (screened.empty()) {
    const JobState end = job_.state().cancelled ? JobState::kCancelled : JobState::kFailed;
    return job_.End(end, NothingRan(job_));
  }
  best_ = *std::min_element(
      screened.begin(), screened.end(),
      [this](const Screened& a, const Screened& b) { return ComesBefore(task_, a, b); });
  job_.state().state = JobState::kConfirming;
  job_.SetPhase("waiting for the kernel");
  job_.Save();
  job_.ShowState();
  deadline_ = job_.Steady() + job_.options().artifact_limit;
  Tick();
}

void DeliverPhase::Rebuild() {
  rebuilt_ = true;
  deadline_ = job_.Steady() + job_.options().artifact_limit;
  const record::Candidate& candidate = best_.record.candidate;
  fleet::WorkItem item = task_.MakeItem(candidate, task_.SpaceText(candidate.space_digest));
  item.best_latency_ns = nullptr;
  task_.Measure(
      std::move(item), task_.MakeRecord(candidate, best_.record.trial), /*event=*/-1,
      /*earlier_ns=*/0,
      [this](const record::Record& record, const std::string& worker_id) {
        if (job_.state().state != JobState::kConfirming) return;
        if (record.result.outcome == record::Outcome::kOk) best_ = ScreenedOf(record, worker_id);
        Tick();
      },
      [](const absl::Status&) {});  // after the deadline, the job fails
}

void DeliverPhase::Tick() {
  if (job_.state().state != JobState::kConfirming) return;
  const std::string& artifact = best_.record.result.artifact_digest;
  if (job_.services().artifacts->Has(artifact)) {
    job_.state().best = task_.MakeBest(best_.record);
    return job_.End(job_.state().cancelled ? JobState::kCancelled : JobState::kDone);
  }
  // This is repeated because the worker may have been started again since.
  if (!best_.worker_id.empty()) job_.services().fleet->KeepArtifact(artifact, best_.worker_id);
  const bool late = job_.Steady() >= deadline_;
  if (!rebuilt_ && (late || best_.worker_id.empty())) return Rebuild();
  if (late) {
    job_.End(JobState::kFailed,
             absl::FailedPreconditionError("the kernel did not arrive from a worker in time"));
  }
}

}  // namespace hone::job

#include "server/task/deliver_phase.h"

#include <algorithm>
#include <utility>

namespace hone::task {

void DeliverPhase::Begin(std::vector<Screened> screened) {
  job_.SetDoing("choosing the best candidate");
  if (screened.empty()) return job_.End(JobState::kFailed, NothingRan(job_.state()));
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

void DeliverPhase::Tick() {
  const std::string& artifact = best_.record.result.artifact_digest;
  if (job_.services().artifacts->Has(artifact)) {
    job_.state().best = task_.MakeBest(best_.record);
    return job_.End(job_.state().cancelled ? JobState::kCancelled : JobState::kDone);
  }
  // This is repeated because the worker may have been started again since.
  if (!best_.worker_id.empty()) job_.services().fleet->KeepArtifact(artifact, best_.worker_id);
  if (job_.Steady() >= deadline_) {
    job_.End(JobState::kFailed,
             absl::FailedPreconditionError("the kernel did not arrive from its worker in time"));
  }
}

}  // namespace hone::task

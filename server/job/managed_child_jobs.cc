#include "server/job/managed_child_jobs.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "server/job/actor/job_codec.h"

namespace hone::job {

void ManagedChildJobs::CreateChild(const std::string& id, JobSpec spec, int64_t allowance,
                                   Done done) {
  if (book_.Find(id) != nullptr || services_.store->GetJob(id).ok()) {
    return std::move(done)(absl::OkStatus());  // an earlier server did not note it
  }
  JobSnapshot snapshot;
  snapshot.id = id;
  snapshot.fence = 1;
  snapshot.spec = std::move(spec);
  snapshot.allowance = snapshot.unmeasured = allowance;
  snapshot.created_unix_ms = absl::ToUnixMillis(services_.clock->Now());
  starter_.StartChild(std::move(snapshot),
                      [done = std::move(done)](const SnapshotOr& created) mutable {
                        std::move(done)(created.status());
                      });
}

void ManagedChildJobs::ReopenChild(const std::string& id, int64_t allowance, Done done) {
  absl::StatusOr<store::JobRow> row = services_.store->GetJob(id);
  if (!row.ok()) return std::move(done)(row.status());
  absl::StatusOr<JobSnapshot> snapshot = FromRow(*row);
  if (!snapshot.ok()) return std::move(done)(snapshot.status());
  snapshot->state = JobState::kPending;
  snapshot->cancelled = false;
  snapshot->error.clear();
  snapshot->is_resumable = false;
  snapshot->note.clear();
  snapshot->allowance = std::max(snapshot->allowance, allowance);
  row = RowOf(*snapshot, services_.clock->Now());
  starter_.StartAgain(*std::move(row), *std::move(snapshot),
                      [done = std::move(done)](const SnapshotOr& started) mutable {
                        std::move(done)(started.status());
                      });
}

absl::StatusOr<ChildJobs::Child> ManagedChildJobs::GetChild(const std::string& id) const {
  if (const std::shared_ptr<JobActor> job = book_.Find(id); job != nullptr) {
    const bool begun = job->HasBegun();  // first, because the snapshot may be older otherwise
    return Child{.begun = begun, .snapshot = job->snapshot()};
  }
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const JobSnapshot> snapshot,
                        ReadJob(book_, *services_.store, id));
  return Child{.snapshot = std::move(snapshot)};
}

std::shared_ptr<Job> ManagedChildJobs::FindChild(const std::string& id) const {
  return std::dynamic_pointer_cast<Job>(book_.Find(id));
}

void ManagedChildJobs::AllowChild(const std::string& id, int64_t candidates) {
  if (const std::shared_ptr<Job> job = FindChild(id); job != nullptr) job->Allow(candidates);
}

void ManagedChildJobs::FinishChild(const std::string& id, absl::Duration limit, bool cancelled) {
  if (const std::shared_ptr<Job> job = FindChild(id); job != nullptr) job->Finish(limit, cancelled);
}

void ManagedChildJobs::CancelChild(const std::string& id) {
  if (const std::shared_ptr<Job> job = FindChild(id); job != nullptr) job->Cancel(false);
}

}  // namespace hone::job

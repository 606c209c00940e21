#include "server/job/job_starter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/seconds_text.h"
#include "common/base/status_macros.h"
#include "server/job/actor/job_codec.h"
#include "server/job/job.h"
#include "server/job/network/network_job.h"
#include "server/job/search/draft_work.h"
#include "spdlog/spdlog.h"

namespace hone::job {

std::shared_ptr<JobActor> JobStarter::Make(JobSnapshot snapshot) const {
  if (snapshot.spec.network.has_value()) {
    return std::make_shared<NetworkJob>(services_, options_, std::move(snapshot));
  }
  return std::make_shared<Job>(services_, options_, std::move(snapshot));
}

absl::StatusOr<JobSnapshot> JobStarter::NewSnapshot(std::string id, JobSpec spec) const {
  JobSnapshot snapshot{.id = std::move(id), .spec = std::move(spec)};
  snapshot.created_unix_ms = absl::ToUnixMillis(services_.clock->Now());
  if (snapshot.spec.network.has_value()) return snapshot;
  const absl::StatusOr<WorkloadInfo> workload =
      services_.environment->Describe(snapshot.spec.workload);
  if (workload.ok()) snapshot.workload_digest = workload->digest;
  // The job keeps this draft, so that its search can be repeated.
  HONE_ASSIGN_OR_RETURN(snapshot.spec.draft_model,
                        NewestDraft(*services_.store, snapshot.spec.target_key));
  return snapshot;
}

void JobStarter::StartNew(JobSnapshot snapshot, Done done, std::shared_ptr<void> place) {
  store::JobRow row = RowOf(snapshot, services_.clock->Now());
  std::shared_ptr<JobActor> job = Make(std::move(snapshot));
  std::optional<SnapshotOr> other = book_.AddNew(job, place.get());
  place.reset();
  if (other.has_value()) return std::move(done)(*std::move(other));
  StoreAndStart(std::move(row), std::move(job), std::move(done));
}

void JobStarter::StartAgain(store::JobRow row, JobSnapshot snapshot, Done done) {
  std::shared_ptr<JobActor> job = Make(std::move(snapshot));
  std::optional<SnapshotOr> other = book_.AddAgain(job);
  if (other.has_value()) return std::move(done)(*std::move(other));
  StoreAndStart(std::move(row), std::move(job), std::move(done));
}

void JobStarter::StoreAndStart(store::JobRow row, std::shared_ptr<JobActor> job, Done done) {
  const bool is_child = !job->spec().parent.empty();  // nobody waits for the answer
  services_.store->PutJob(
      row,
      [this, row, job, done = std::move(done)](absl::Status status) mutable {
        if (status.ok()) {
          job->Start();
          return std::move(done)(job->snapshot());
        }
        book_.Remove(row.id);
        if (!absl::IsAlreadyExists(status) || row.request_id.empty()) {
          return std::move(done)(status);
        }
        // Another call with the same request has just ended. The thread that ends writes must not
        // read.
        services_.executor->Schedule(
            [this, status, request = row.request_id, done = std::move(done)]() mutable {
              absl::StatusOr<store::JobRow> first = services_.store->GetJobByRequest(request);
              if (!first.ok()) return std::move(done)(status);
              std::move(done)(SharedFromRow(*first));
            });
      },
      is_child ? store::WhenFull::kWait : store::WhenFull::kFail);
}

void JobStarter::CreateChild(const std::string& id, JobSpec spec, int64_t allowance,
                             bool skips_default, ChildDone done) {
  if (book_.Find(id) != nullptr) return std::move(done)(absl::OkStatus());
  const absl::Status stored = services_.store->GetJob(id).status();
  // OK: an earlier server has stored the child, but its parent did not note it.
  if (!absl::IsNotFound(stored)) return std::move(done)(stored);
  absl::StatusOr<JobSnapshot> snapshot = NewSnapshot(id, std::move(spec));
  if (!snapshot.ok()) return std::move(done)(snapshot.status());
  snapshot->allowance = snapshot->unmeasured = allowance;
  store::JobRow row = RowOf(*snapshot, services_.clock->Now());
  auto job = std::make_shared<Job>(services_, options_, *std::move(snapshot));
  if (skips_default) job->SkipDefault();
  if (!book_.Add(job)) return;
  StoreAndStart(std::move(row), std::move(job),
                [done = std::move(done)](const SnapshotOr& created) mutable {
                  std::move(done)(created.status());
                });
}

void JobStarter::ReopenChild(const std::string& id, int64_t allowance, ChildDone done) {
  absl::StatusOr<store::JobRow> row = services_.store->GetJob(id);
  if (!row.ok()) return std::move(done)(row.status());
  absl::StatusOr<JobSnapshot> snapshot = FromRow(*row);
  if (!snapshot.ok()) return std::move(done)(snapshot.status());
  Reopen(*snapshot);
  snapshot->allowance = std::max(snapshot->allowance, allowance);
  row = RowOf(*snapshot, services_.clock->Now());
  StartAgain(*std::move(row), *std::move(snapshot),
             [done = std::move(done)](const SnapshotOr& started) mutable {
               std::move(done)(started.status());
             });
}

absl::StatusOr<JobStarter::Child> JobStarter::GetChild(const std::string& id) const {
  if (const std::shared_ptr<JobActor> job = book_.Find(id); job != nullptr) {
    const bool begun = job->HasBegun();  // first, because the snapshot may be older otherwise
    return Child{.begun = begun, .snapshot = job->snapshot()};
  }
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const JobSnapshot> snapshot,
                        ReadJob(book_, *services_.store, id));
  return Child{.snapshot = std::move(snapshot)};
}

std::shared_ptr<Job> JobStarter::FindChild(const std::string& id) const {
  return std::dynamic_pointer_cast<Job>(book_.Find(id));
}

void JobStarter::AllowChild(const std::string& id, int64_t candidates) {
  if (const std::shared_ptr<Job> job = FindChild(id); job != nullptr) job->Allow(candidates);
}

void JobStarter::ConfirmChild(const std::string& id, Job::ConfirmRequest request) {
  if (const std::shared_ptr<Job> job = FindChild(id); job != nullptr) job->Confirm(request);
}

void JobStarter::CancelChild(const std::string& id) {
  if (const std::shared_ptr<Job> job = FindChild(id); job != nullptr) job->Cancel(false);
}

void JobTurns::Add(const std::vector<std::shared_ptr<JobActor>>& jobs) {
  {
    absl::MutexLock lock(&mutex_);
    waiting_.insert(waiting_.end(), jobs.begin(), jobs.end());
  }
  Pass();
}

void JobTurns::Pass() {
  absl::MutexLock lock(&mutex_);
  if (stopped_ || waiting_.empty()) return;
  const absl::Time now = services_.SteadyNow();
  if (beginning_ != nullptr && !beginning_->HasBegun()) {
    if (now < started_ + kLongest) return;
    spdlog::warn("job {}: has not begun within {}; the next one begins", beginning_->id(),
                 SecondsText(kLongest));
  }
  beginning_ = std::move(waiting_.front());
  waiting_.pop_front();
  started_ = now;
  beginning_->Start();
}

void JobTurns::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

}  // namespace hone::job

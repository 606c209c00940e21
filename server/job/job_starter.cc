#include "server/job/job_starter.h"

#include <limits>
#include <optional>
#include <utility>

#include "server/job/actor/job_codec.h"
#include "server/job/job.h"
#include "server/job/network/network_job.h"

namespace hone::job {

store::JobClaim JobStarter::Claim() const {
  const absl::Time now = services_.clock->Now();
  return {.replica = services_.server,
          .now_unix_ms = absl::ToUnixMillis(now),
          .until_unix_ms = services_.store->IsShared()
                               ? absl::ToUnixMillis(now + options_.claim_lease)
                               : std::numeric_limits<int64_t>::max()};
}

std::shared_ptr<JobActor> JobStarter::Make(JobSnapshot snapshot) const {
  if (snapshot.spec.network.has_value()) {
    return std::make_shared<NetworkJob>(services_, options_, std::move(snapshot));
  }
  return std::make_shared<Job>(services_, options_, std::move(snapshot));
}

store::JobRow JobStarter::NewRow(const JobSnapshot& snapshot) const {
  store::JobRow row = RowOf(snapshot, services_.clock->Now());
  const store::JobClaim claim = Claim();
  row.replica = claim.replica;
  row.lease_until_unix_ms = claim.until_unix_ms;
  return row;
}

void JobStarter::StartNew(JobSnapshot snapshot, Done done) {
  store::JobRow row = NewRow(snapshot);
  std::shared_ptr<JobActor> job = Make(std::move(snapshot));
  std::optional<SnapshotOr> other = book_.AddNew(job);
  if (other.has_value()) return std::move(done)(*std::move(other));
  StoreAndStart(std::move(row), std::move(job), std::move(done));
}

void JobStarter::StartChild(JobSnapshot snapshot, Done done) {
  store::JobRow row = NewRow(snapshot);
  std::shared_ptr<JobActor> job = Make(std::move(snapshot));
  if (!book_.AddChild(job)) return;
  StoreAndStart(std::move(row), std::move(job), std::move(done));
}

void JobStarter::StartAgain(store::JobRow row, JobSnapshot snapshot, Done done) {
  if (services_.store->IsShared()) {
    // The next replica that claims the job continues it.
    return services_.store->PutJob(
        row, [this, row, done = std::move(done)](absl::Status status) mutable {
          if (!status.ok()) return std::move(done)(status);
          services_.store->ReleaseJob(row.id, row.fence, [](const absl::Status&) {});
          std::move(done)(SharedFromRow(row));
        });
  }
  std::shared_ptr<JobActor> job = Make(std::move(snapshot));
  std::optional<SnapshotOr> other = book_.AddAgain(job);
  if (other.has_value()) return std::move(done)(*std::move(other));
  StoreAndStart(std::move(row), std::move(job), std::move(done));
}

void JobStarter::StoreAndStart(store::JobRow row, std::shared_ptr<JobActor> job, Done done) {
  services_.store->PutJob(
      row, [this, row, job, done = std::move(done)](absl::Status status) mutable {
        if (status.ok()) {
          book_.SetStored(row.id);
          job->Start();
          return std::move(done)(job->snapshot());
        }
        book_.Remove(row.id);
        // Another replica handled the same request at the same time.
        if (absl::IsAlreadyExists(status) && !row.request_id.empty()) {
          absl::StatusOr<store::JobRow> first = services_.store->GetJobByRequest(row.request_id);
          if (first.ok()) return std::move(done)(SharedFromRow(*first));
        }
        std::move(done)(status);
      });
}

}  // namespace hone::job

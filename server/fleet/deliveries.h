#ifndef HONE_SERVER_FLEET_DELIVERIES_H_
#define HONE_SERVER_FLEET_DELIVERIES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "server/fleet/artifact_cache.h"
#include "server/fleet/deferred_calls.h"
#include "server/fleet/fleet_options.h"
#include "server/fleet/lease_book.h"
#include "server/fleet/worker_registry.h"

namespace hone::fleet {

// Brings results from workers to the jobs, and remembers which of them are being committed. Ends
// leases and items that have no result. Not thread-safe: its owner locks.
class Deliveries {
 public:
  // Called once for each delivered result, from any thread and without a lock: it is durable, or it
  // will not be.
  using CommitEnded = std::function<void(const std::string& lease_id, bool durable)>;
  // The others outlive it.
  Deliveries(const FleetOptions* options, const ArtifactCache* artifacts, WorkerRegistry* registry,
             LeaseBook* book, DeferredCalls* deferred, CommitEnded commit_ended)
      : options_(*options),
        artifacts_(*artifacts),
        registry_(*registry),
        book_(*book),
        deferred_(*deferred),
        commit_ended_(std::move(commit_ended)) {}

  // The worker has finished a lease. Returns why it is not to be believed; "" if it is.
  std::string Take(Worker& worker, FinishedLease& finished);
  // The job has committed the lease's result, or given it up. Returns the worker that waits for
  // that; null if it was forgotten.
  Worker* EndCommit(const std::string& lease_id, bool durable);
  // Ends an item without a result.
  void Fail(int64_t item, absl::Status why);

  // Ends a lease without a result: its item waits again, or comes back as device_lost.
  void EndLease(const std::string& lease_id, LeaseEnd end);
  // The same for every lease of a worker that was lost.
  void EndLeasesOf(const Worker& worker, const std::string& why);
  // Takes a lease from a worker, which is told to stop it. This is not an attempt.
  void TakeBack(const std::string& lease_id);

  int64_t results() const { return results_; }  // delivered to their jobs
  int64_t refused() const { return refused_; }  // of stale leases, and those that cannot be true

 private:
  class Commit;

  // Why the lease is given to another worker in spite of its result; "" if it is not.
  std::string WhyRetried(const Worker& worker, const Lease& lease,
                         const record::MeasureResult& result);
  void Deliver(TrackedItem item, absl::StatusOr<WorkResult> result, const std::string& lease_id);
  void GiveUp(LeaseBook::GivenUp given_up);

  const FleetOptions& options_;
  const ArtifactCache& artifacts_;
  WorkerRegistry& registry_;
  LeaseBook& book_;
  DeferredCalls& deferred_;
  const CommitEnded commit_ended_;
  absl::flat_hash_map<std::string, std::string> committing_;  // worker id by lease id
  int64_t results_ = 0;
  int64_t refused_ = 0;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_DELIVERIES_H_

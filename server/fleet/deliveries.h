#ifndef HONE_SERVER_FLEET_DELIVERIES_H_
#define HONE_SERVER_FLEET_DELIVERIES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "server/fleet/fleet_parts.h"

namespace hone::fleet {

// Returns why the result of a run cannot be true; "" if it can. A failed run is always possible.
// The latency of a successful run must be positive, at most an hour, and not shorter than the time
// that the item's operations take at the device's peak; its samples must not be negative. The peak
// was measured when the worker registered, and the device may be faster now. Therefore the peak is
// compared with the latency corrected for the drift (record::SteadyLatencyNs), and may be exceeded
// by a quarter. The peak of an accelerator is not a limit, because it was measured with a single
// kernel, and other kernels may be faster.
std::string WhyImpossible(const WorkItem& work, const record::MeasureResult& result,
                          const Capabilities& device);

// Sets the drift of a result to 1 if only the correction for the drift makes the result faster than
// the peak. In that case, other programs disturbed the measurement of the reference kernel, which
// happens on shared machines. Sets the result's detail to this reason.
void DropImpossibleDrift(const WorkItem& work, const Capabilities& device,
                         record::MeasureResult* result);

// Delivers the results of workers to the jobs, and keeps track of the results that are being
// committed. Also ends leases and items that have no result. Not thread-safe: the owner must lock.
class Deliveries {
 public:
  // Called once for each delivered result, from any thread and without a lock, when the result is
  // durable or when the job has dropped it.
  using CommitEnded = std::function<void(const std::string& lease_id, bool durable)>;
  Deliveries(const FleetParts& parts, CommitEnded commit_ended)
      : parts_(parts), commit_ended_(std::move(commit_ended)) {}

  // Takes a lease that the worker has finished. Returns why the result cannot be true; "" if it
  // can.
  std::string Take(Worker& worker, FinishedLease& finished);
  // Called when the job has committed or dropped the lease's result. Returns the worker that waits
  // for this; null if the worker was forgotten.
  Worker* EndCommit(const std::string& lease_id, bool durable);
  // Ends an item without a result.
  void Fail(int64_t item, absl::Status why);

  // Ends a lease without a result. Its item waits again, or comes back as device_lost.
  void EndLease(const std::string& lease_id, LeaseEnd end);
  // Does the same for every lease of a lost worker.
  void EndLeasesOf(const Worker& worker, const std::string& why);
  // Takes a lease from its worker and tells the worker to stop it. Does not count as an attempt.
  void TakeBack(const std::string& lease_id);

  // Returns the worker that built an artifact; "" if it is not known, for example because an
  // earlier server got the result.
  std::string BuilderOf(const std::string& artifact) const;

  int64_t results() const { return results_; }  // delivered to their jobs
  int64_t refused() const { return refused_; }  // impossible results, and those of stale leases

 private:
  class Commit;

  // Returns why the lease's item is tried again in spite of the result; "" if it is not.
  std::string WhyRetried(const Worker& worker, const Lease& lease,
                         const record::MeasureResult& result);
  void Deliver(TrackedItem item, absl::StatusOr<WorkResult> result, const std::string& lease_id);
  void GiveUp(LeaseBook::GivenUp given_up);

  const FleetParts parts_;
  const CommitEnded commit_ended_;
  absl::flat_hash_map<std::string, std::string> committing_;  // worker id by lease id
  absl::flat_hash_map<std::string, std::string> builders_;    // worker id by artifact
  int64_t results_ = 0;
  int64_t refused_ = 0;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_DELIVERIES_H_

#ifndef HONE_SERVER_FLEET_FLEET_H_
#define HONE_SERVER_FLEET_FLEET_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/fleet/artifact_cache.h"
#include "server/fleet/fleet_parts.h"
#include "server/fleet/lease_book.h"
#include "server/fleet/worker.h"
#include "server/fleet/worker_registry.h"

namespace hone::fleet {

// The server's side of the worker protocol (proto/hone/v1/worker.proto): the workers, the waiting
// items and the leases. It composes its parts under one lock; README.md lists them and explains
// states, attempts and fairness.
//
// If a worker can both build and run a candidate, it gets one lease with build and run set.
// Otherwise a worker gets a build lease, and uploads the artifact before it reports the result; a
// run lease follows. Every lease id is a fence: a result whose lease id is not current is dropped,
// and the worker is told to forget it.
//
// Owned by the server. Thread-safe. Callbacks run on the caller's thread, after the lock is
// released, and may call the fleet. Deadlines are checked only in Tick. The clock should be a
// steady one.
class Fleet {
 public:
  Fleet(const Clock* clock, ArtifactCache* artifacts, FleetOptions options = {});

  // Queues an item. `done` runs once; see WorkDone.
  void Submit(WorkItem work, WorkDone done);
  // Ends every item of the job with Cancelled, and tells workers to stop the job's leases.
  void CancelJob(const std::string& job_id) { CancelItems(job_id, /*started_too=*/true); }
  // Ends the job's items that no worker has started (waiting here, or still queued at a worker)
  // with Cancelled.
  void CancelWaiting(const std::string& job_id) { CancelItems(job_id, /*started_too=*/false); }

  // Handles a worker's call. `done` runs when there is news for the worker, or after max_wait. If
  // an earlier call of the same worker is still held, that call is answered at once without news.
  // Returns a token that names this call for Abandon.
  uint64_t Synchronize(WorkerReport report, SynchronizeDone done);
  // Drops a held call without an answer, because its connection broke.
  void Abandon(uint64_t token);

  // Asks the worker that has the artifact to upload it, until it is in the artifact cache.
  void KeepArtifact(const std::string& digest, const std::string& worker_id);
  // Returns whether a worker with this identity ("" without authentication) holds a lease to build
  // a candidate of the workload for the target. Only such a worker knows the compiler and the
  // target, and may send the workload's reference kernel to others.
  bool HasBuildLease(const std::string& identity, const std::string& workload_digest,
                     const std::string& target_key) const;
  // Returns the worker that built an artifact; "" if it is not known.
  std::string BuilderOf(const std::string& artifact) const;
  // Returns the worker that should build a candidate again to compare the artifacts: one with this
  // version of the builder, none of `besides`, and another than `built_by` if possible. "" if there
  // is none.
  std::string Rebuilder(const std::string& target_key, const BuilderVersion& version,
                        const std::string& built_by, const std::vector<std::string>& besides) const;
  // Counts that a candidate built again gave another artifact.
  void NoteBuildMismatch();
  // Called when an upload has arrived in the artifact cache.
  void ArtifactArrived(const std::string& digest);

  // Returns every registered worker, sorted by id. The environment of a worker that only runs names
  // the builder that its next records will name.
  std::vector<WorkerInfo> Workers() const;
  // Returns a registered worker; nullopt if no worker has that id.
  std::optional<WorkerInfo> FindWorker(const std::string& id) const;
  // Returns whether a worker is connected, and has called within half of the time after which a
  // silent worker is lost. Busy workers call much more often.
  bool Answers(const std::string& id) const;
  // Returns whether workers take work that run the target, and that build for it. Unlike Workers,
  // this copies nothing.
  bool IsServed(const std::string& target_key) const;
  // Returns the work of a job that is leased to workers that do not answer; nullopt if there is
  // none.
  std::optional<SilentWork> FindSilentWork(const std::string& job_id) const;
  // Returns the same, and also the other workers that are drained, flagged or removed. Of those,
  // only the name and the standing are known.
  std::vector<WorkerInfo> KnownWorkers() const;
  FleetCounts Counts() const;

  // Which workers are drained, flagged or removed. The owner of the fleet stores the changes, and
  // passes the stored ones on before workers call (server/service/standing_keeper).
  Standings& standings() { return standings_; }
  const Standings& standings() const { return standings_; }

  // Drains a worker: it finishes the leases that it has started and gets no more, and its queued
  // leases are requeued. If `resume`, undoes this, and also a flag or a removal. Like a flag, it
  // belongs to the name, and applies even while the worker is disconnected. NotFound: no worker has
  // that id, or the worker to be drained was removed.
  absl::StatusOr<WorkerInfo> Drain(const std::string& id, bool resume);
  // Forgets a worker and refuses it, under any name, until it is resumed. Its leases are requeued,
  // without counting as attempts. Returns their number. `remembered`: the identity of a worker that
  // is not registered but has called before. NotFound: no worker has that id.
  absl::StatusOr<int> Remove(const std::string& id,
                             const std::optional<std::string>& remembered = std::nullopt);
  // Marks a worker whose results are not trusted: it gets no leases until it is resumed, and its
  // leases are requeued. Does nothing if the worker is not registered.
  void Flag(const std::string& id, const std::string& why);

  // Returns the targets for which a registered worker can run candidates.
  std::set<std::string> Targets() const;
  // Returns the capabilities of the worker of the target that has measured the largest peak.
  // nullopt if no worker of the target is registered.
  std::optional<Capabilities> DeviceOf(const std::string& target_key) const;
  // Returns the worker with the fewest leases that can run the target, except those in `besides`.
  // The worker is connected, and neither drained nor refused. "" if there is no such worker.
  std::string AnotherRunner(const std::string& target_key,
                            const std::vector<std::string>& besides) const;

  // Returns a target that some registered worker can run: the one with this key, or the only one if
  // `key` is "". Unavailable: no worker has the target yet. FailedPrecondition: `key` is "" and
  // there are several targets.
  absl::StatusOr<TargetChoice> FindTarget(const std::string& key) const;
  // Does the same, but waits up to `patience` for a worker of the target. FailedPrecondition: no
  // such worker came, or `key` is "" and there are several targets; the message says what to do.
  // ResourceExhausted: too many calls wait. Unavailable: the server is shutting down.
  void AwaitTarget(const std::string& key, absl::Duration patience, TargetDone done);

  // Ends calls, workers, leases and items whose deadlines have passed. Called a few times a second.
  void Tick();
  // Answers every held call, and makes later calls return at once. Queued items are dropped without
  // their callbacks.
  void Shutdown();

 private:
  class Section;

  void CancelItems(const std::string& job_id, bool started_too);
  // Called when a result is durable, or when it is known that it never will be.
  void EndCommit(const std::string& lease_id, bool durable);

  // Parts of Synchronize.
  // Calls on_rival if the worker has a second process of which `seen_before` was not recent.
  void ReportRival(const Worker& worker, absl::Time seen_before)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadReport(Worker& worker, WorkerReport& report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadLeases(Worker& worker, const WorkerReport& report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoseWorker(Worker& worker, const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Changes of standings.
  // Marks a worker whose results are not trusted. Leaves its held call to the caller.
  void Distrust(const std::string& id, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes back the leases that a worker may no longer hold after its standing has changed, under
  // any of its names. Returns their number. Leaves the held call of this name to the caller.
  int ApplyStanding(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int ApplyStandingTo(Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Descriptions of workers, in worker_list.cc.
  // Describes a worker. Of one that is not registered, only the name and the standing are known.
  WorkerInfo InfoOf(const std::string& id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Activity> ActivitiesOf(const std::string& id, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether a worker that is connected still calls.
  bool IsCalling(const Worker& worker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tell FleetOptions::on_event once about each change in the life of a worker. TellCall: called
  // before the report of a call updates the worker, which joins, comes back or has a new process.
  // `new_process`: why the name has another process now; "" if it has not. TellLost: the worker
  // does not call any more. TellStanding: before a removed worker is erased.
  void TellCall(const Worker& worker, const WorkerReport& report, const std::string& new_process)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellLost(const Worker& worker, const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellStanding(const std::string& id, const std::string& what)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(const std::string& id, std::string event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Time.
  void ExpireWorkers(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExpireLeases(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Steal(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  ArtifactCache* const artifacts_;
  const FleetOptions options_;

  Standings standings_;  // has its own lock

  mutable absl::Mutex mutex_;
  DeferredCalls deferred_ ABSL_GUARDED_BY(mutex_);
  WorkerRegistry registry_ ABSL_GUARDED_BY(mutex_);
  LeaseBook book_ ABSL_GUARDED_BY(mutex_);
  const FleetParts parts_ ABSL_GUARDED_BY(mutex_);  // refers to the members above
  TargetWaits target_waits_ ABSL_GUARDED_BY(mutex_);
  Deliveries deliveries_ ABSL_GUARDED_BY(mutex_);
  WorkerCalls calls_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_steal_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int64_t stolen_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t build_mismatches_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t turned_away_ ABSL_GUARDED_BY(mutex_) = 0;  // results in refused calls
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_FLEET_H_

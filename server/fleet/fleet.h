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
#include "server/fleet/deferred_calls.h"
#include "server/fleet/deliveries.h"
#include "server/fleet/dispatcher.h"
#include "server/fleet/fleet_options.h"
#include "server/fleet/lease_book.h"
#include "server/fleet/standings.h"
#include "server/fleet/target_waits.h"
#include "server/fleet/work.h"
#include "server/fleet/worker.h"
#include "server/fleet/worker_calls.h"
#include "server/fleet/worker_registry.h"

namespace hone::fleet {

// The workers and what they do: the server's side of the worker protocol (architecture.md). It
// composes its parts under one lock; README.md lists them and explains states, attempts and
// fairness.
//
// A candidate is one lease with build and run set when the worker can do both. Otherwise it is a
// build lease, whose artifact the worker uploads before it reports, and then a run lease. Every
// lease id is a fence: a result under an id that is not current is dropped, and the worker is told
// to forget it.
//
// Owned by the server, thread-safe. Callbacks run on the caller's thread, after the lock is
// released, and may call the fleet. Time comes from the clock, which should be one that cannot be
// set, and passes only in Tick.
class Fleet {
 public:
  Fleet(const Clock* clock, ArtifactCache* artifacts, FleetOptions options = {});

  // Queues an item. `done` runs once; see WorkDone.
  void Submit(WorkItem work, WorkDone done);
  // Ends every item of the job with Cancelled; workers are told to stop what they hold.
  void CancelJob(const std::string& job_id) { CancelItems(job_id, /*started_too=*/true); }
  // Ends the job's items that no worker has started (waiting here, or still queued at a worker)
  // with Cancelled.
  void CancelWaiting(const std::string& job_id) { CancelItems(job_id, /*started_too=*/false); }

  // A worker's call. `done` runs when there is news for it, or after max_wait. An earlier call of
  // the same worker that is still held is answered at once with nothing new. The token names this
  // call for Abandon.
  uint64_t Synchronize(WorkerReport report, SynchronizeDone done);
  // The connection of a held call broke: it is dropped without an answer.
  void Abandon(uint64_t token);

  // Asks the worker that has the artifact to upload it. Ends when it is in the artifact cache.
  void KeepArtifact(const std::string& digest, const std::string& worker_id);
  // An upload has arrived in the artifact cache.
  void ArtifactArrived(const std::string& digest);

  // Every registered worker, by id. Environments are those of the workers' records: with the
  // version of the builder.
  std::vector<WorkerInfo> Workers() const;
  // The same, and the other workers that are drained, flagged or removed. Only the name and the
  // standing of a worker that has not called are known.
  std::vector<WorkerInfo> KnownWorkers() const;
  FleetCounts Counts() const;

  // How workers stand. What its owner stores of it, and adopts, goes through here.
  Standings& standings() { return standings_; }
  const Standings& standings() const { return standings_; }
  // Takes over stored standings as Standings::Adopt does, and applies those that changed.
  void Adopt(const std::vector<Standing>& stored);

  // The worker finishes what it has started and gets no more leases; those that wait at it go back.
  // `resume` undoes this, and also a flag or a removal. Applies, as a flag does, to the name, also
  // while its worker is away. NotFound: no worker has that id.
  absl::StatusOr<WorkerInfo> Drain(const std::string& id, bool resume);
  // Forgets a worker and refuses it until it is resumed. Its leases go back without an attempt;
  // returns their number. NotFound: no worker has that id.
  absl::StatusOr<int> Remove(const std::string& id);
  // The worker's results are not trusted: it gets no leases until it is resumed, and its leases go
  // back. Does nothing if there is no such worker.
  void Flag(const std::string& id, const std::string& why);

  // Targets of registered workers that run what is built for them.
  std::set<std::string> Targets() const;
  // The capabilities of a worker of the target: the first one by id that knows its peak, or else
  // the first one. nullopt: no worker of the target is registered.
  std::optional<Capabilities> DeviceOf(const std::string& target_key) const;
  // The connected worker of the target, other than these, with the fewest leases; "" if there is
  // none.
  std::string AnotherRunner(const std::string& target_key,
                            const std::vector<std::string>& besides) const;

  // A target that some registered worker can run: the one with this key, or with "" the only one
  // there is. Unavailable: no worker has it yet. FailedPrecondition: "" and there are several.
  absl::StatusOr<TargetChoice> FindTarget(const std::string& key) const;
  // The same, but waits for a worker of the target, at most so long. FailedPrecondition: none came,
  // or "" and there are several; the message says what to do. ResourceExhausted: too many calls
  // wait.
  void AwaitTarget(const std::string& key, absl::Duration patience, TargetDone done);

  // Lets time pass: expires calls, workers, leases and items. Called a few times a second.
  void Tick();
  // Answers every held call and lets later calls go at once; queued items are dropped without their
  // callbacks.
  void Shutdown();

 private:
  class Section;

  void CancelItems(const std::string& job_id, bool started_too);
  // A result is durable, or will not be.
  void EndCommit(const std::string& lease_id, bool durable);

  // What a worker says in its call.
  void ReadReport(Worker& worker, WorkerReport& report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadLeases(Worker& worker, const WorkerReport& report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoseWorker(Worker& worker, const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Standings.
  // The worker's standing has changed: takes back what it may not hold any more, and returns how
  // many leases that are.
  int ApplyStanding(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Distrust(const std::string& id, const std::string& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Answers a removed worker's call and forgets it.
  void Dismiss(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  WorkerInfo InfoOf(const std::string& id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

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
  Dispatcher dispatcher_ ABSL_GUARDED_BY(mutex_);
  TargetWaits target_waits_ ABSL_GUARDED_BY(mutex_);
  Deliveries deliveries_ ABSL_GUARDED_BY(mutex_);
  WorkerCalls calls_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_steal_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int64_t stolen_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t turned_away_ ABSL_GUARDED_BY(mutex_) = 0;  // results
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_FLEET_H_

#ifndef HONE_SERVER_FLEET_FLEET_H_
#define HONE_SERVER_FLEET_FLEET_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/fleet/artifact_cache.h"
#include "server/fleet/work.h"
#include "server/fleet/work_queue.h"
#include "server/fleet/worker.h"

namespace hone::fleet {

// Every state has a deadline; these are all of them.
struct FleetOptions {
  // A lease ends this long after it was granted, whatever the worker says: its compile and run
  // limits are far shorter.
  absl::Duration lease_limit = absl::Minutes(5);
  // How long a call of Synchronize is held at most; a random part of it, so that calls spread.
  absl::Duration max_wait = absl::Seconds(40);
  // A worker that has no call here is lost after this long.
  absl::Duration silence_limit = absl::Seconds(20);
  // How long an item waits for a first worker that can do it (a server that has just started has
  // none yet) …
  absl::Duration unsatisfied_limit = absl::Seconds(60);
  // … and how long a lost worker counts as one that may come back.
  absl::Duration forget_after = absl::Minutes(10);
  // A worker is told again to stop a lease that it still holds after so long.
  absl::Duration cancel_retry = absl::Seconds(2);
  // A worker is asked again for an artifact that it has not sent for so long.
  absl::Duration keep_retry = absl::Seconds(10);
  // An item whose leases ended this often without an answer comes back as device_lost.
  int max_attempts = 5;
  // So does one that this many workers were lost while running it.
  int max_killed_workers = 2;
  // Makes lease ids unique across restarts of the server; "" for a random one.
  std::string instance;
};

// The workers and what they do: registry, queue and leases, the server's side of the worker
// protocol (architecture.md).
//
// A candidate is one lease with build and run set when the worker can do both; else a build lease,
// whose artifact the worker uploads before it reports, and then a run lease. Every lease id is a
// fence: a result under an id that is not current is dropped, and the worker is told to forget it.
//
// Attempts: a lost worker and an overrun lease count; a server restart, a cancelled or draining
// worker's waiting leases and a reply lost on the way do not. Only leases in phase running count as
// killed.
//
// Owned by the server, thread-safe. Callbacks run on the caller's thread, after the lock is
// released, and may call the fleet. Time comes from the clock and passes only in Tick.
class Fleet {
 public:
  Fleet(const Clock* clock, ArtifactCache* artifacts, FleetOptions options = {});

  // Queues an item. `done` runs once; see WorkDone.
  void Submit(WorkItem work, WorkDone done);
  // Ends every item of the job with Cancelled; workers are told to stop what they hold.
  void CancelJob(const std::string& job_id);
  // Ends the job's items that no worker has started (waiting here, or still queued at a worker)
  // with Cancelled.
  void CancelWaiting(const std::string& job_id);

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

  // Every registered worker, by id.
  std::vector<WorkerInfo> Workers() const;

  // A target that some registered worker can run: the one with this key, or with "" the only one
  // there is. Waits for a worker until `deadline`. FailedPrecondition: none came, or "" and there
  // are several; the message says what to do.
  struct TargetChoice {
    std::string key;
    std::string text;
  };
  using TargetDone = absl::AnyInvocable<void(absl::StatusOr<TargetChoice>) &&>;
  void FindTarget(const std::string& key, absl::Time deadline, TargetDone done);

  // Lets time pass: expires calls, workers, leases and items. Called a few times a second.
  void Tick();
  // Answers every held call and lets later ones go at once; queued items are dropped without their
  // callbacks.
  void Shutdown();

 private:
  struct HeldCall {
    uint64_t token = 0;  // 0: none
    absl::Time deadline;
    SynchronizeDone done;
  };
  struct Worker {
    std::string epoch;
    Capabilities capabilities;
    bool connected = false;
    bool draining = false;
    absl::Time last_seen;
    std::string last_error;
    int free_build_slots = 0;
    int free_run_slots = 0;
    HeldCall call;
    std::set<std::string> leases;
    std::vector<std::string> resend;  // granted, and not restated since
    std::vector<std::string> cancel;
    // Leases that are not its own any more and that it still held, with when it was last told so.
    std::map<std::string, absl::Time> strange;
    std::vector<std::string> durable;
    std::map<std::string, absl::Time> keep;  // digest → when to ask (again)
  };
  struct LeaseState {
    int64_t item = 0;
    std::string worker_id;
    bool build = false;
    bool run = false;
    absl::Time deadline;
    LeasePhase phase = LeasePhase::kQueued;
  };
  struct TargetWait {
    std::string key;
    absl::Time deadline;
    TargetDone done;
  };
  // What to call once the lock is released.
  using After = std::vector<absl::AnyInvocable<void() &&>>;
  class Commit;

  void ReadReport(const std::string& id, Worker& worker, WorkerReport& report, After& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(const std::string& id, Worker& worker, FinishedLease& finished, After& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(TrackedItem item, absl::StatusOr<WorkResult> result, const std::string& lease_id,
               After& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Committed(const std::string& lease_id);
  // Ends a lease without an answer; its item is queued again or given up.
  void EndLease(const std::string& lease_id, bool counts, bool killed, After& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoseWorker(Worker& worker, absl::string_view why, After& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CancelItems(const std::string& job_id, bool started_too);
  bool Fits(const TrackedItem& item, const std::string& id, const Worker& worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether a registered worker, here or lost a short time ago, runs this target.
  bool HasRunner(const std::string& target_key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string WhyUnsatisfied(const TrackedItem& item) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Grant(const std::string& id, Worker& worker, SynchronizeReply& reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LeaseGrant Describe(const std::string& lease_id, const LeaseState& lease)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  SynchronizeReply Compose(const std::string& id, Worker& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answer(Worker& worker, SynchronizeReply reply, After& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Answers every held call that there is news for, and every target wait that can be.
  void Pump(After& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExpireItems(absl::Time now, After& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<TargetChoice> ChooseTarget(const std::string& key) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  ArtifactCache* const artifacts_;
  const FleetOptions options_;
  const std::string instance_;

  mutable absl::Mutex mutex_;
  std::map<std::string, Worker> workers_ ABSL_GUARDED_BY(mutex_);
  WorkQueue queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, LeaseState> leases_ ABSL_GUARDED_BY(mutex_);
  // Results that their owner has, by lease, with the worker that is to be told once they are
  // committed.
  absl::flat_hash_map<std::string, std::string> committing_ ABSL_GUARDED_BY(mutex_);
  std::list<TargetWait> target_waits_ ABSL_GUARDED_BY(mutex_);
  int64_t next_lease_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t next_token_ ABSL_GUARDED_BY(mutex_) = 1;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_FLEET_H_

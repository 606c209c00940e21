#ifndef HONE_SERVER_FLEET_FLEET_H_
#define HONE_SERVER_FLEET_FLEET_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
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

// Every state has a deadline; these are all of them, with the bounds of every queue.
struct FleetOptions {
  // The one value that calls and eviction derive from: a worker calls at least this often, calls
  // are held for at most so long, and a worker that was silent for twice this is lost.
  absl::Duration heartbeat = absl::Seconds(10);
  absl::Duration max_wait() const { return heartbeat; }
  absl::Duration silence_limit() const { return 2 * heartbeat; }
  // A worker that has all that it can hold is told to come when it has finished something, or after
  // so long: a call held for it would bring no work.
  absl::Duration rest() const { return heartbeat / 10; }
  // Workers that have something to do call, all together, about once in this: each gathers its
  // results and waits for more work for this times the number of workers, `rest()` at most. A small
  // fleet does not notice; a large one spares most of its calls.
  absl::Duration spacing = absl::Milliseconds(1);
  // A lease ends this long after it was granted, whatever the worker says: its compile and run
  // limits are far shorter.
  absl::Duration lease_limit = absl::Minutes(5);
  // How long an item waits for a first worker that can do it (a server that has just started has
  // none yet) …
  absl::Duration unsatisfied_limit = absl::Seconds(60);
  // … and how long a lost worker counts as one that may come back.
  absl::Duration forget_after = absl::Minutes(10);
  // A worker is told again to stop a lease that it still holds after so long.
  absl::Duration cancel_retry = absl::Seconds(2);
  // A worker is asked again for an artifact that it has not sent for so long.
  absl::Duration keep_retry = absl::Seconds(10);
  // A lease that has waited at its worker for so long is given to one that is idle.
  absl::Duration steal_after = absl::Seconds(2);
  // An item whose leases ended this often without an answer comes back as device_lost.
  int max_attempts = 5;
  // So does one that workers answered so often with device_lost themselves.
  int max_device_errors = 3;
  // So does one that this many workers were lost while running it.
  int max_killed_workers = 2;
  // Items that wait or are leased: of one owner, and of all.
  int64_t max_items_per_owner = 16384;
  int64_t max_items = 65536;
  int64_t max_workers = 10000;
  // Makes lease ids unique across restarts of the server; "" for a random one.
  std::string instance;
  // Is told the id of a worker that was flagged, on the caller's thread, without the lock. May be
  // null.
  std::function<void(const std::string& worker_id)> on_standing;
};

// The workers and what they do: registry, queue and leases, the server's side of the worker
// protocol (architecture.md). README.md here explains states, attempts and fairness.
//
// A candidate is one lease with build and run set when the worker can do both; else a build lease,
// whose artifact the worker uploads before it reports, and then a run lease. Every lease id is a
// fence: a result under an id that is not current is dropped, and the worker is told to forget it.
//
// Owned by the server, thread-safe. Callbacks run on the caller's thread, after the lock is
// released, and may call the fleet. Time comes from the clock, which should be one that nobody
// sets, and passes only in Tick.
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
  // The same, and those beside them that are drained, flagged or removed; of one that has not
  // called there is nothing but its name and its standing.
  std::vector<WorkerInfo> KnownWorkers() const;
  FleetCounts Counts() const;

  // How a worker stands; nothing is held against one that nobody knows.
  Standing StandingOf(const std::string& id) const;
  // What is to be stored of it; nothing when everything is.
  std::optional<UnstoredStanding> UnstoredOf(const std::string& id) const;
  // That is stored, unless something newer is to be.
  void StandingStored(const UnstoredStanding& stored);
  // Takes over what is stored, as it was read since BeginAdopt: the standing of every worker, but
  // for those whose own change was not stored then. One adoption at a time.
  void BeginAdopt();
  void Adopt(const std::vector<Standing>& stored);
  void BreakOffAdopt();

  // The worker finishes what it has started and gets no more; what waits at it goes back. With
  // `resume` the other way round, also for one that was flagged or removed. Holds, as a flag does,
  // for the name, also while its worker is away. NotFound: no worker has that id.
  absl::StatusOr<WorkerInfo> Drain(const std::string& id, bool resume);
  // Forgets a worker and refuses it from now on, until it is resumed; its leases go back without an
  // attempt. Returns how many. NotFound: no worker has that id.
  absl::StatusOr<int> Remove(const std::string& id);
  // The worker is not to be believed: it gets no leases until it is resumed, and what it holds goes
  // back. Nothing when there is no such worker.
  void Flag(const std::string& id, const std::string& why);

  // Targets of registered workers that run what is built for them.
  std::set<std::string> Targets() const;
  // What a worker of the target said that it is: the first by its id that knows its peak, else the
  // first. Nothing: none is registered.
  std::optional<Capabilities> DeviceOf(const std::string& target_key) const;
  // A connected worker of the target beside these, the one that holds least; "" when there is none.
  std::string AnotherRunner(const std::string& target_key,
                            const std::vector<std::string>& besides) const;

  // A target that some registered worker can run: the one with this key, or with "" the only one
  // there is. Waits for a worker at most so long. FailedPrecondition: none came, or "" and there
  // are several; the message says what to do.
  struct TargetChoice {
    std::string key;
    std::string text;
  };
  using TargetDone = absl::AnyInvocable<void(absl::StatusOr<TargetChoice>) &&>;
  void FindTarget(const std::string& key, absl::Duration patience, TargetDone done);

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
    bool patient = false;  // it may be held
  };
  struct Worker {
    std::string epoch;
    std::string identity;                 // bound to the id by its first call
    std::deque<std::string> past_epochs;  // of processes that were replaced
    Capabilities capabilities;
    bool connected = false;
    bool leaving = false;  // its own wish: it ends
    bool drained = false;  // an administrator's, of drained_
    // A suspect item is to be retried by it, alone: it gets nothing else until that is done.
    bool solo = false;
    bool standing_told = false;
    absl::Time last_seen;
    std::string last_error;
    record::MachineState machine;
    int free_build_slots = 0;
    int free_run_slots = 0;
    HeldCall call;
    std::set<std::string> leases;
    // Its results that went to be committed, those whose commit has ended, and how many of these
    // news wait for: what was under way when they began to wait, or a stream of results would keep
    // them back.
    int64_t commits_begun = 0;
    int64_t commits_ended = 0;
    int64_t commits_awaited = 0;
    std::vector<std::string> resend;  // granted, and not restated since
    std::vector<std::string> cancel;
    // Leases that are not its own any more and that it still held, with when it was last told so.
    std::map<std::string, absl::Time> strange;
    std::vector<std::string> durable;
    std::map<std::string, absl::Time> keep;  // digest → when to ask (again)
    // News can wait for the commit, which takes milliseconds, and travel with it: it has something
    // to do.
    bool WaitsForCommit() const {
      return call.patient && commits_ended < commits_awaited && !leases.empty() && cancel.empty() &&
             standing_told;
    }
    // It has all that it can hold.
    bool IsFull() const {
      return !leases.empty() && (capabilities.can_build ? free_build_slots : free_run_slots) <= 0;
    }
  };
  struct LeaseState {
    int64_t item = 0;
    std::string worker_id;
    bool build = false;
    bool run = false;
    bool alone = false;
    absl::Time granted;
    absl::Time deadline;
    LeasePhase phase = LeasePhase::kQueued;
  };
  struct TargetWait {
    std::string key;
    absl::Time deadline;
    TargetDone done;
  };
  // How a lease ended that brought no answer.
  struct LeaseEnd {
    bool counts = true;   // as an attempt
    bool killed = false;  // the worker died of it
    bool suspect = false;
    std::string why;
  };
  // What to call once the lock is released.
  using After = std::vector<absl::AnyInvocable<void() &&>>;
  class Commit;

  // fleet.cc: calls and results.
  void ReadReport(const std::string& id, Worker& worker, WorkerReport& report, After& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(const std::string& id, Worker& worker, FinishedLease& finished, After& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(TrackedItem item, absl::StatusOr<WorkResult> result, const std::string& lease_id,
               After& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A result is durable, or will not be.
  void EndCommit(const std::string& lease_id, bool durable);
  void CancelItems(const std::string& job_id, bool started_too);
  // Why the call is not taken in at all, such as of a worker that it is not; "" it is.
  std::string WhyTurnedAway(const WorkerReport& report) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  SynchronizeReply Compose(const std::string& id, Worker& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answer(const std::string& id, Worker& worker, SynchronizeReply reply, After& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Notes what the worker's held call, if there is one, waits for.
  void NoteHunger(const std::string& id, const Worker& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The time between two calls of a worker that has something to do.
  absl::Duration Pace() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How long a worker need not call unless it has results to tell.
  absl::Duration NextCall(const Worker& worker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Answers the worker's held call if there is news for it that cannot wait.
  void Wake(const std::string& id, Worker& worker, After& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // fleet_lease.cc: who gets what.
  // Ends a lease without an answer; its item is queued again or given up.
  void EndLease(const std::string& lease_id, LeaseEnd end, After& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes a lease from a worker, which is told to stop it; not an attempt.
  void TakeBack(const std::string& lease_id, After& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoseWorker(Worker& worker, absl::string_view why, After& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the lane's items wait for one worker, which is here.
  bool IsPinned(const Lane& lane) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the worker could ever take items of the lane, …
  bool Serves(const Lane& lane, const std::string& id, const Worker& worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // … and whether it may take one now.
  bool IsOpen(const Lane& lane, const std::string& id, const Worker& worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Fits(const TrackedItem& item, const std::string& id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the worker is to take nothing but suspects now.
  bool GoesSolo(const std::string& id, Worker& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Grant(const std::string& id, Worker& worker, SynchronizeReply& reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LeaseGrant Describe(const std::string& lease_id, const LeaseState& lease)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Requeue(TrackedItem& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Items that waited for something may be taken by others now.
  void OfferEverything() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives what has come to wait since the last call to workers whose calls are held.
  void Offer(After& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Idle workers get what has waited at busy ones.
  void Steal(absl::Time now, After& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // fleet_time.cc: deadlines.
  void AnswerCalls(absl::Time now, After& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExpireItems(absl::Time now, After& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExpireTargetWaits(absl::Time now, After& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // fleet_registry.cc: which devices there are.
  // Registered workers, here or lost a short time ago, that may run each target.
  void CountRunners() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRunner(const std::string& target_key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string WhyUnsatisfied(const Lane& lane) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<TargetChoice> ChooseTarget(const std::string& key) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerTargetWaits(After& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  WorkerInfo Describe(const std::string& id, const Worker& worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // fleet_standing.cc: which of them are to be used.
  struct Refusal {
    std::string why;
    bool removed = false;  // else flagged
  };
  Standing StandingNow(const std::string& id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has the worker stand so, here or away, and takes back what it may not hold any more; how many
  // leases that are.
  int SetStanding(const Standing& standing, After& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Answers a removed worker's call and forgets it.
  void Dismiss(const std::string& id, After& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The worker's standing has changed here, and is to be stored.
  void NoteUnstored(const std::string& id, bool drained, bool refused)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Distrust(const std::string& id, const std::string& why, After& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellStanding(const std::string& id, After& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  ArtifactCache* const artifacts_;
  const FleetOptions options_;
  const std::string instance_;

  mutable absl::Mutex mutex_;
  std::map<std::string, Worker> workers_ ABSL_GUARDED_BY(mutex_);
  // Workers that get no leases; also while they are away.
  std::map<std::string, Refusal> refused_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> drained_ ABSL_GUARDED_BY(mutex_);  // also while they are away
  // What is not known to be stored of standings that changed here; while they are adopted also what
  // was stored meanwhile.
  struct Unstored {
    int64_t number = 0;
    bool drained = false;
    bool refused = false;
    bool stored = false;
  };
  std::map<std::string, Unstored> unstored_ ABSL_GUARDED_BY(mutex_);
  int64_t standing_changes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool adopting_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, int> runners_ ABSL_GUARDED_BY(mutex_);          // by target key
  std::map<uint64_t, std::string> held_calls_ ABSL_GUARDED_BY(mutex_);  // worker by token
  // Workers whose held calls wait for leases that begin with a build, and for others.
  std::set<std::string> hungry_for_builds_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> hungry_for_runs_ ABSL_GUARDED_BY(mutex_);
  WorkQueue queue_ ABSL_GUARDED_BY(mutex_);
  std::set<Lane> fresh_ ABSL_GUARDED_BY(mutex_);  // lanes to be offered
  absl::flat_hash_map<std::string, LeaseState> leases_ ABSL_GUARDED_BY(mutex_);
  // Leases in the order of their deadlines, also some that have ended.
  std::deque<std::pair<absl::Time, std::string>> lease_deadlines_ ABSL_GUARDED_BY(mutex_);
  // Lanes that no registered worker serves, since when.
  std::map<Lane, absl::Time> unsatisfied_ ABSL_GUARDED_BY(mutex_);
  // Results that their owner has, by lease, with the worker that is to be told once they are
  // committed.
  absl::flat_hash_map<std::string, std::string> committing_ ABSL_GUARDED_BY(mutex_);
  std::list<TargetWait> target_waits_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_steal_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  FleetCounts counts_ ABSL_GUARDED_BY(mutex_);
  int64_t next_lease_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t next_token_ ABSL_GUARDED_BY(mutex_) = 1;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_FLEET_H_

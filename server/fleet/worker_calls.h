#ifndef HONE_SERVER_FLEET_WORKER_CALLS_H_
#define HONE_SERVER_FLEET_WORKER_CALLS_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/fleet/deferred_calls.h"
#include "server/fleet/dispatcher.h"
#include "server/fleet/fleet_options.h"
#include "server/fleet/lease_book.h"
#include "server/fleet/standings.h"
#include "server/fleet/worker_registry.h"

namespace hone::fleet {

// The calls of workers that are held, and the answers to them: what a worker is told, and when. Not
// thread-safe: its owner locks.
class WorkerCalls {
 public:
  struct Parts {
    const Clock* clock = nullptr;
    const FleetOptions* options = nullptr;
    const Standings* standings = nullptr;
    WorkerRegistry* registry = nullptr;
    LeaseBook* book = nullptr;
    Dispatcher* dispatcher = nullptr;
    DeferredCalls* deferred = nullptr;
  };
  // The parts outlive it.
  explicit WorkerCalls(const Parts& parts) : parts_(parts) {}

  // Takes a call whose report has been read; its worker has no other call. It is answered when
  // there is news for the worker, or after max_wait. Returns the call's token.
  uint64_t Take(Worker& worker, absl::Duration max_wait, SynchronizeDone done);
  // Answers a call of which nothing is taken in: its worker is to let go of everything.
  uint64_t Refuse(const WorkerReport& report, TurnedAway turned_away, SynchronizeDone done);
  // Drops the call of a broken connection, and returns what is to be destroyed without a lock. Null
  // if no call that is held has the token.
  SynchronizeDone Abandon(uint64_t token);
  bool IsHeld(const Worker& worker) const { return held_.contains(worker.id); }
  // Whether the worker's process still calls: it has not announced its end, and a call of it is
  // held or ended a moment ago.
  bool IsAlive(const Worker& worker) const;

  // Answers the worker's call, if it is held, with nothing new.
  void Answer(Worker& worker) { Answer(worker, SynchronizeReply()); }
  // Answers the worker's call if there is news for it that cannot wait.
  void Wake(Worker& worker);
  // Gives what has come to wait since the last call to workers whose calls are held.
  void Offer();
  // Time has passed: answers calls that were held long enough, and asks for artifacts again.
  void Tick(absl::Time now);
  // Answers every call, and later ones at once.
  void Close();

  // The worker may, or may no longer, get leases in the answer to its held call.
  void NoteHunger(const Worker& worker);
  // Workers whose held calls wait for leases, and that hold none.
  std::set<std::string> Idle() const;

 private:
  struct Call {
    uint64_t token = 0;
    absl::Time deadline;
    SynchronizeDone done;
    bool patient = false;  // it may be held
  };
  std::set<std::string>& hungry(bool build) { return build ? for_builds_ : for_runs_; }
  SynchronizeReply Compose(Worker& worker);
  void Answer(Worker& worker, SynchronizeReply reply);
  // Takes the worker's call out. REQUIRES: it is held.
  SynchronizeDone Release(const std::string& worker_id);
  // The worker's news can wait for a commit, which takes milliseconds: it has something to do.
  bool WaitsForCommit(const Worker& worker, const Call& call) const;
  // The time between two calls of a worker that has something to do.
  absl::Duration Pace() const;
  // How long a worker need not call unless it has results to tell.
  absl::Duration NextCall(const Worker& worker) const;

  const Parts parts_;
  absl::flat_hash_map<std::string, Call> held_;            // by worker id
  absl::flat_hash_map<uint64_t, std::string> worker_ids_;  // by token, of held calls
  // Workers whose held calls wait for leases that begin with a build, or for leases that only run.
  std::set<std::string> for_builds_;
  std::set<std::string> for_runs_;
  uint64_t next_token_ = 1;
  bool closed_ = false;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_WORKER_CALLS_H_

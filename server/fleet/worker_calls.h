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

// Holds the calls of workers, and decides when to answer them and with what. Not thread-safe: the
// owner must lock.
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
  // REQUIRES: the parts outlive this object.
  explicit WorkerCalls(const Parts& parts) : parts_(parts) {}

  // Takes a call whose report has been read, and answers it when there is news for the worker, or
  // after max_wait at the latest. Returns the call's token. REQUIRES: no other call of the worker
  // is held.
  uint64_t Take(Worker& worker, absl::Duration max_wait, SynchronizeDone done);
  // Answers a call whose report is ignored. The answer tells the worker to drop all its leases and
  // results. Returns a token that names no held call.
  uint64_t Refuse(const WorkerReport& report, TurnedAway turned_away, SynchronizeDone done);
  // Drops the held call of a broken connection. Returns its callback, which the caller should
  // destroy without a lock; null if no held call has the token.
  SynchronizeDone Abandon(uint64_t token);
  bool IsHeld(const Worker& worker) const { return held_.contains(worker.id); }
  // kRecent: the worker called less than FleetOptions::name_limit ago.
  Presence PresenceOf(const Worker& worker) const;

  // Answers the worker's held call, if there is one, without news.
  void Answer(Worker& worker) { Answer(worker, SynchronizeReply()); }
  // Answers the worker's held call if there is news that cannot wait.
  void Wake(Worker& worker);
  // Grants items that have started to wait since the last Offer to workers whose calls are held.
  void Offer();
  // Answers calls that have been held long enough, and repeats requests for artifacts.
  void Tick(absl::Time now);
  // Answers all held calls. Later calls are answered at once.
  void Close();

  // Notes whether the worker's held call can be answered with leases.
  void NoteHunger(const Worker& worker);
  // Workers without leases whose held calls wait for leases.
  std::set<std::string> Idle() const;

 private:
  struct Call {
    uint64_t token = 0;
    absl::Time deadline;
    SynchronizeDone done;
    bool patient = false;  // the call may be held
  };
  std::set<std::string>& hungry(bool build) { return build ? for_builds_ : for_runs_; }
  SynchronizeReply Compose(Worker& worker);
  void Answer(Worker& worker, SynchronizeReply reply);
  // Removes the worker's held call and returns its callback. REQUIRES: the call is held.
  SynchronizeDone Release(const std::string& worker_id);
  // Whether the worker's news can wait for a commit, which takes milliseconds, because the worker
  // has other leases to work on.
  bool WaitsForCommit(const Worker& worker, const Call& call) const;
  // The time between two calls of a busy worker.
  absl::Duration Pace() const;
  // How long the worker need not call unless it has results to report.
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

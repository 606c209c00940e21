#ifndef HONE_SERVER_FLEET_FLEET_PARTS_H_
#define HONE_SERVER_FLEET_FLEET_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/fleet/artifact_cache.h"
#include "server/fleet/lease_book.h"
#include "server/fleet/worker_registry.h"

namespace hone::fleet {

// Collects callbacks while a lock is held. The owner runs them after it has released the lock. Not
// thread-safe: the owner must lock.
class DeferredCalls {
 public:
  // Adds the call done(arguments...).
  template <typename Done, typename... Arguments>
  void Add(Done done, Arguments... arguments) {
    calls_.push_back([done = std::move(done), ... arguments = std::move(arguments)]() mutable {
      std::move(done)(std::move(arguments)...);
    });
  }
  // Returns the calls that were added since the last Take, in order.
  std::vector<absl::AnyInvocable<void() &&>> Take() { return std::exchange(calls_, {}); }

 private:
  std::vector<absl::AnyInvocable<void() &&>> calls_;
};

// What the parts of a fleet share. The fleet owns it, and its lock guards it.
struct FleetParts {
  const Clock& clock;
  const FleetOptions& options;
  const ArtifactCache& artifacts;
  Standings& standings;
  WorkerRegistry& registry;
  LeaseBook& book;
  DeferredCalls& deferred;
};

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

// Holds the calls of workers, and decides when to answer them and with what: grants leases, finds
// leases that idle workers can take from busy ones, and items that no worker can do. Not
// thread-safe: the owner must lock.
class WorkerCalls {
 public:
  explicit WorkerCalls(const FleetParts& parts) : parts_(parts) {}

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

  // Leases that an idle worker takes from a busy one, after they were queued there for
  // `steal_after`.
  struct Theft {
    Worker* thief = nullptr;
    Worker* victim = nullptr;
    std::vector<std::string> leases;
  };
  std::vector<Theft> FindThefts(absl::Time now) const;
  // Returns waiting items that must fail, with the reason: the artifact that they name is gone. If
  // only the artifact of an item's own build is gone, the item is queued to be built again.
  std::vector<std::pair<int64_t, absl::Status>> FindHopeless(absl::Time now);

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

  // Which worker gets which item.
  // Whether the lane's items wait for one particular worker, and that worker can take them.
  bool IsPinned(const Lane& lane) const;
  // Whether the worker could ever take items of the lane, and whether it may take one now.
  bool Serves(const Lane& lane, const Worker& worker) const;
  bool IsOpen(const Lane& lane, const Worker& worker) const;
  bool Fits(const TrackedItem& item, const std::string& worker_id) const;
  // Whether the worker must take only suspects now.
  bool GoesSolo(Worker& worker) const;
  // Grants the worker leases for its free slots, until the answer is large: a trace may have
  // megabytes, and a message at most 16 MiB. The next call gets the others.
  void Grant(Worker& worker, absl::Time now, SynchronizeReply& reply);
  LeaseGrant Describe(const Lease& lease, absl::Time now) const;
  // Leases that may be taken from their workers, by worker.
  using Stealable = std::map<std::string, std::vector<std::string>>;
  Stealable FindStealable(absl::Time now) const;
  Theft FindTheft(Worker& thief, const Stealable& stealable) const;

  const FleetParts parts_;
  absl::flat_hash_map<std::string, Call> held_;            // by worker id
  absl::flat_hash_map<uint64_t, std::string> worker_ids_;  // by token, of held calls
  // Workers whose held calls wait for leases that begin with a build, or for leases that only run.
  std::set<std::string> for_builds_;
  std::set<std::string> for_runs_;
  uint64_t next_token_ = 1;
  bool closed_ = false;
};

using TargetDone = absl::AnyInvocable<void(absl::StatusOr<TargetChoice>) &&>;

// Calls that wait for a worker of a target, by the target's key. The key "" stands for the only
// target of all workers. Not thread-safe: the owner must lock.
class TargetWaits {
 public:
  // At most `most` calls may wait. REQUIRES: the other objects outlive this one.
  TargetWaits(size_t most, const WorkerRegistry* registry, DeferredCalls* deferred)
      : most_(most), registry_(*registry), deferred_(*deferred) {}

  // Answers at once if a worker of the target is registered or `key` is ambiguous, and otherwise
  // when such a worker registers, or Expire is called after `patience`. FailedPrecondition: `key`
  // is "" and there are several targets. ResourceExhausted: too many calls wait. Unavailable: Close
  // was called.
  void Await(const std::string& key, absl::Time now, absl::Duration patience, TargetDone done);
  // Called when a worker of the target has registered.
  void Answer(const std::string& target_key);
  // Answers the calls that have waited long enough with FailedPrecondition; the message names the
  // time, the target and those that are registered, and says what to do.
  void Expire(absl::Time now);
  // Answers all waiting calls, and later ones at once, with Unavailable.
  void Close();
  size_t size() const { return waits_.size(); }

 private:
  struct Wait {
    absl::Time deadline;
    absl::Duration patience;
    TargetDone done;
  };

  const size_t most_;
  const WorkerRegistry& registry_;
  DeferredCalls& deferred_;
  std::multimap<std::string, Wait> waits_;
  bool closed_ = false;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_FLEET_PARTS_H_

#ifndef HONE_SERVER_SERVICE_STANDING_KEEPER_H_
#define HONE_SERVER_SERVICE_STANDING_KEEPER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/fleet/fleet.h"
#include "server/store/store.h"

namespace hone::service {

// The objects that StandingKeeper and WorkerMemory use. All outlive them.
struct KeeperDependencies {
  const Clock* clock = nullptr;         // the time of day, for times that are stored
  const Clock* steady_clock = nullptr;  // for deadlines and intervals
  fleet::Fleet* fleet = nullptr;
  store::Store* store = nullptr;
};

// Stores which workers of the fleet are drained, removed or flagged. A write that fails is repeated
// until it succeeds; until then a restart would lose the change. Thread-safe.
class StandingKeeper {
 public:
  // A failed write is repeated after kFirstRetry, then after twice as long, and so on.
  static constexpr absl::Duration kFirstRetry = absl::Seconds(1);
  static constexpr absl::Duration kLongestRetry = absl::Minutes(1);

  explicit StandingKeeper(const KeeperDependencies& deps) : deps_(deps) {}

  // Passes the stored standings to the fleet. Called once, before workers call. Errors are those of
  // the store.
  absl::Status Restore();
  // Stores the changed standing of a worker. `done` runs once with the result of the write. If the
  // write fails, it is repeated later. If several calls overlap, the last write to be committed has
  // the newest standing.
  void Keep(const std::string& worker_id, store::Store::Done done);
  // Does the same for a worker that the fleet has flagged.
  void Keep(const std::string& worker_id);
  // Repeats failed writes. Called a few times a second.
  void Tick();
  // Returns the number of workers whose standing could not be stored yet.
  int64_t unstored() const;

 private:
  struct Retry {
    int failures = 0;
    absl::Time when;
    bool under_way = false;
  };
  void Stored(const fleet::UnstoredStanding& news, const absl::Status& status);

  const KeeperDependencies deps_;
  absl::Mutex order_;  // makes reading the fleet and queueing the write one step
  mutable absl::Mutex mutex_;
  std::map<std::string, Retry> retries_ ABSL_GUARDED_BY(mutex_);  // by worker
};

// Stores which workers have called, so that a restarted server knows which of them have not called
// again yet. Like the store, it forgets a worker kWorkerMemoryMs after its last call. Thread-safe.
class WorkerMemory {
 public:
  // How often the fleet is examined.
  static constexpr absl::Duration kLookInterval = absl::Seconds(5);
  // How old the stored last call of a connected worker may be. A server that is killed forgets
  // later calls. In a large fleet, it is longer, so that at most a hundred workers are stored per
  // second.
  static absl::Duration RefreshInterval(size_t workers) {
    return std::max(absl::Seconds(10), absl::Milliseconds(10) * static_cast<int64_t>(workers));
  }

  explicit WorkerMemory(const KeeperDependencies& deps) : deps_(deps) {}

  // Reads the stored workers. Called once. Errors are those of the store.
  absl::Status Restore();
  // Stores what has changed. Called a few times a second.
  void Tick();
  // Stores the last calls of all workers. Called when the server ends.
  void Keep();
  // Stores the last call of a worker that is about to be removed, so that it stays in lists.
  void Keep(const std::string& worker_id);
  // Completes a list of the fleet's workers, by name, with those that have not called since the
  // start of the server or since they were removed.
  std::vector<fleet::WorkerInfo> WithAbsent(std::vector<fleet::WorkerInfo> workers) const;
  // Returns the identity (fleet::IdentityOf) of a worker; nullopt if it is not known.
  std::optional<std::string> IdentityOf(const std::string& worker_id) const;

 private:
  void Save(bool all);
  // Stores the last call of a worker if it has to be stored: of a connected worker, if it is later
  // than the stored one by at least `refresh`.
  void Note(const fleet::WorkerInfo& worker, absl::Duration refresh, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const KeeperDependencies deps_;
  mutable absl::Mutex mutex_;
  std::map<std::string, store::KnownWorker> known_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_look_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_STANDING_KEEPER_H_

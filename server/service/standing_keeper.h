#ifndef HONE_SERVER_SERVICE_STANDING_KEEPER_H_
#define HONE_SERVER_SERVICE_STANDING_KEEPER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/fleet/fleet.h"
#include "server/job/actor/executor.h"
#include "server/store/store.h"

namespace hone::service {

// Stores which workers of the fleet are drained, removed or flagged. Writes only changes that were
// made in this server. A write that fails is repeated until it succeeds; until then only this
// server applies the change. If server replicas share the store, the changes of the others are read
// every few seconds. Thread-safe. REQUIRES: the dependencies outlive this object.
class StandingKeeper {
 public:
  // Another replica applies a drain, a removal or a flag after at most this time.
  static constexpr absl::Duration kLookInterval = absl::Seconds(5);
  // A failed write is repeated after kFirstRetry, then after twice as long, and so on.
  static constexpr absl::Duration kFirstRetry = absl::Seconds(1);
  static constexpr absl::Duration kLongestRetry = absl::Minutes(1);

  struct Dependencies {
    const Clock* clock = nullptr;         // for times that are stored
    const Clock* steady_clock = nullptr;  // for deadlines
    fleet::Fleet* fleet = nullptr;
    store::Store* store = nullptr;
    job::Executor* executor = nullptr;  // for reads of the changes of other replicas
  };
  explicit StandingKeeper(const Dependencies& deps) : deps_(deps) {}

  // Passes the stored standings to the fleet. Called once, before workers call. Errors are those of
  // the store.
  absl::Status Restore();
  // Stores the changed standing of a worker. `done` runs once with the result of the write. If the
  // write fails, it is repeated later. If several calls overlap, the last write to be committed has
  // the newest standing.
  void Keep(const std::string& worker_id, store::Store::Done done);
  // Does the same for a worker that the fleet has flagged.
  void Keep(const std::string& worker_id);
  // Repeats failed writes, and reads the changes of other replicas. Called a few times a second.
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
  void Look();

  const Dependencies deps_;
  absl::Mutex order_;  // makes reading the fleet and queueing the write one step
  mutable absl::Mutex mutex_;
  std::map<std::string, Retry> retries_ ABSL_GUARDED_BY(mutex_);  // by worker
  bool looking_ ABSL_GUARDED_BY(mutex_) = false;
  bool blind_ ABSL_GUARDED_BY(mutex_) = false;  // the last read failed
  absl::Time next_look_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_STANDING_KEEPER_H_

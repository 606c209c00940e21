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
#include "server/store/store.h"
#include "server/task/executor.h"

namespace hone::service {

// Keeps in the store how workers stand in the fleet: what an administrator said of them, and which
// are not believed. Only what has changed here is written. A write that fails is tried again until
// it is done; until then the standing holds in this server alone. Where server replicas share the
// store, what others wrote is read every few seconds. Thread-safe; the others outlive it.
class StandingKeeper {
 public:
  // Another replica sees a drain, a removal or a flag after at most this time.
  static constexpr absl::Duration kLookInterval = absl::Seconds(5);
  // What could not be stored is tried again after the first, then after twice as long, and so on.
  static constexpr absl::Duration kFirstRetry = absl::Seconds(1);
  static constexpr absl::Duration kLongestRetry = absl::Minutes(1);

  struct Dependencies {
    const Clock* clock = nullptr;         // of what is written down
    const Clock* steady_clock = nullptr;  // of deadlines
    fleet::Fleet* fleet = nullptr;
    store::Store* store = nullptr;
    task::Executor* executor = nullptr;  // reads what others wrote
  };
  explicit StandingKeeper(const Dependencies& deps) : deps_(deps) {}

  // Gives the fleet what is stored. Called once, before workers call. Errors are the store's.
  absl::Status Restore();
  // Stores what has changed of how a worker stands; `done` runs once with what came of it. After an
  // error, which is the store's, it is tried again. Of several calls at once the last one to be
  // committed has the newest standing.
  void Keep(const std::string& worker_id, store::Store::Done done);
  // The same for a worker that the fleet has flagged.
  void Keep(const std::string& worker_id);
  // Lets time pass: tries again, and looks at what others wrote. Called a few times a second.
  void Tick();
  // Workers whose standing could not be stored yet.
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
  absl::Mutex order_;  // reading the fleet and queueing the write are one step
  mutable absl::Mutex mutex_;
  std::map<std::string, Retry> retries_ ABSL_GUARDED_BY(mutex_);  // by worker
  bool looking_ ABSL_GUARDED_BY(mutex_) = false;
  bool blind_ ABSL_GUARDED_BY(mutex_) = false;  // the last look failed
  absl::Time next_look_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_STANDING_KEEPER_H_

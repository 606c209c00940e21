#ifndef HONE_SERVER_SERVICE_STANDING_KEEPER_H_
#define HONE_SERVER_SERVICE_STANDING_KEEPER_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "server/fleet/fleet.h"
#include "server/store/store.h"

namespace hone::service {

// Keeps in the store how workers stand in the fleet: what an administrator said of them, and which
// are not believed. Thread-safe; the others outlive it.
class StandingKeeper {
 public:
  StandingKeeper(const Clock* clock, fleet::Fleet* fleet, store::Store* store)
      : clock_(clock), fleet_(fleet), store_(store) {}

  // Gives the fleet what is stored. Called once, before workers call. Errors are the store's.
  absl::Status Restore();
  // Stores how a worker stands now; `done` runs once that is durable. Of several calls at once the
  // last one to be committed has the newest standing.
  void Keep(const std::string& worker_id, store::Store::Done done);
  // The same, with an error going to the log alone.
  void Keep(const std::string& worker_id);

 private:
  const Clock* const clock_;
  fleet::Fleet* const fleet_;
  store::Store* const store_;
  absl::Mutex order_;  // reading the fleet and queueing the write are one step
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_STANDING_KEEPER_H_

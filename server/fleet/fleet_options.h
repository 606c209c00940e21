#ifndef HONE_SERVER_FLEET_FLEET_OPTIONS_H_
#define HONE_SERVER_FLEET_FLEET_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"

namespace hone::fleet {

// The deadlines of all states and the bounds of all queues.
struct FleetOptions {
  // The one value that calls and eviction derive from: a worker calls at least this often, calls
  // are held for at most so long, and a worker that was silent for twice this is lost.
  absl::Duration heartbeat = absl::Seconds(10);
  absl::Duration max_wait() const { return heartbeat; }
  absl::Duration silence_limit() const { return 2 * heartbeat; }
  // A worker that has all that it can hold is told to call when it has finished something, or after
  // this time: a call held for it would bring no work.
  absl::Duration rest() const { return heartbeat / 10; }
  // All workers that have something to do call about once in this time, taken together: each
  // gathers its results and waits for more work for this times the number of workers, at most
  // `rest()`. A small fleet does not notice; a large one saves most of its calls.
  absl::Duration spacing = absl::Milliseconds(1);
  // The newest process of a name keeps it while a call of it is held, and for this long after its
  // last call. The process that it replaced asks again this often.
  absl::Duration name_limit() const { return heartbeat / 2; }
  // A lease ends this long after it was granted, whatever the worker says. The limits of compiling
  // and running are far shorter.
  absl::Duration lease_limit = absl::Minutes(5);
  // How long an item waits for a first worker that can do it. A server that has just started has no
  // workers yet.
  absl::Duration unsatisfied_limit = absl::Seconds(60);
  // How long a lost worker counts as one that may come back.
  absl::Duration forget_after = absl::Minutes(10);
  // A worker is told again to stop a lease that it still holds after this time.
  absl::Duration cancel_retry = absl::Seconds(2);
  // A worker is asked again for an artifact that it has not sent for this time.
  absl::Duration keep_retry = absl::Seconds(10);
  // A lease that has waited at its worker for this time is given to an idle worker.
  absl::Duration steal_after = absl::Seconds(2);
  // An item whose leases ended this often without an answer comes back as device_lost.
  int max_attempts = 5;
  // An item that workers answered this often with device_lost comes back with that answer.
  int max_device_errors = 3;
  // An item that this many workers were lost while running comes back as device_lost.
  int max_killed_workers = 2;
  // Items that wait or are leased: of one owner, and of all owners.
  int64_t max_items_per_owner = 16384;
  int64_t max_items = 65536;
  int64_t max_workers = 10000;
  // Calls that wait for a first worker of their target.
  size_t max_target_waits = 1024;
  // Makes lease ids unique across restarts of the server; "" for a random one.
  std::string instance;
  // Called with the id of a worker that was flagged, on the caller's thread and without the lock.
  // May be null.
  std::function<void(const std::string& worker_id)> on_standing;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_FLEET_OPTIONS_H_

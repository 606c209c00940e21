#ifndef HONE_SERVER_FLEET_FLEET_OPTIONS_H_
#define HONE_SERVER_FLEET_FLEET_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"

namespace hone::fleet {

// The deadlines of all states and the limits of all queues.
struct FleetOptions {
  // A worker calls at least this often, and the server holds a call for at most this long. A worker
  // that has not called for twice this time is lost.
  absl::Duration heartbeat = absl::Seconds(10);
  absl::Duration max_wait() const { return heartbeat; }
  absl::Duration silence_limit() const { return 2 * heartbeat; }
  // A worker without free slots is told to call again when it has finished a lease, or after this
  // time. Holding its call would be useless, because it cannot take more leases.
  absl::Duration rest() const { return heartbeat / 10; }
  // The process with a worker's name keeps the name while one of its calls is held, and for this
  // long after its last call. A later process with the same name asks for it again this often, and
  // a removed worker asks this often whether it was resumed.
  absl::Duration name_limit() const { return heartbeat / 2; }
  // A lease ends this long after it was granted, even if its worker still reports it. The limits
  // for compiling and running are far shorter.
  absl::Duration lease_limit = absl::Minutes(5);
  // A lost worker is forgotten this long after its last call.
  absl::Duration forget_after = absl::Minutes(10);
  // A worker that still holds a lease after it was told to stop it is told again after this time.
  absl::Duration cancel_retry = absl::Seconds(2);
  // A worker that has not uploaded a requested artifact is asked again after this time.
  absl::Duration keep_retry = absl::Seconds(10);
  // A lease that has been queued at its worker for this long may be given to an idle worker.
  absl::Duration steal_after = absl::Seconds(2);
  // An item comes back as device_lost after this many attempts without an answer.
  int max_attempts = 5;
  // If a worker answers device_lost, the item is tried again until it has this many such answers.
  int max_device_errors = 3;
  // An item comes back as device_lost if this many workers were lost while they ran only this item.
  int max_killed_workers = 2;
  // Maximum number of items that wait or are leased, of one owner and of all owners.
  int64_t max_items_per_owner = 16384;
  int64_t max_items = 65536;
  int64_t max_workers = 10000;
  // Maximum number of calls that wait for a first worker of their target.
  size_t max_target_waits = 1024;
  // Prefix of lease ids, which makes them unique across restarts of the server. "": a random one.
  std::string instance;
  // Called with the id of a worker that was flagged, on the caller's thread and without the fleet's
  // lock. May be null.
  std::function<void(const std::string& worker_id)> on_standing;
  // Called in the same way when a second process uses a worker's name, with a text about it.
  std::function<void(const std::string& worker_id, const std::string& rival)> on_rival;
  // Called in the same way when a worker joins, is lost, comes back or leaves, and when it is
  // drained, removed or resumed, with a text such as "joined: target t on host pi, runs kernels".
  std::function<void(const std::string& worker_id, const std::string& event)> on_event;
  // A second process is mentioned in the list of workers for this long after its last call.
  absl::Duration rival_limit() const { return 3 * name_limit(); }
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_FLEET_OPTIONS_H_

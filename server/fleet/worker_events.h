#ifndef HONE_SERVER_FLEET_WORKER_EVENTS_H_
#define HONE_SERVER_FLEET_WORKER_EVENTS_H_

#include <string>

#include "common/base/clock.h"
#include "server/fleet/deferred_calls.h"
#include "server/fleet/fleet_options.h"
#include "server/fleet/worker.h"
#include "server/fleet/worker_registry.h"

namespace hone::fleet {

// Tells FleetOptions::on_event once about each change in the life of a worker. Heartbeats are no
// events. Not thread-safe: the owner must lock.
class WorkerEvents {
 public:
  // REQUIRES: the parts outlive this object.
  WorkerEvents(const Clock* clock, const FleetOptions* options, DeferredCalls* deferred)
      : clock_(*clock), options_(*options), deferred_(*deferred) {}

  // Called before the report of a call updates the worker: tells if the worker joins, comes back or
  // is a new process. `new_process`: why the name has another process now; "" if it has not.
  void Called(const Worker& worker, const WorkerReport& report, const std::string& new_process);
  // Tells that the worker does not call any more. `why`: "it has ended".
  void Lost(const Worker& worker, const std::string& why);
  // Tells of a changed standing. REQUIRES: a removed worker is still registered. `what`: "was
  // drained by an administrator".
  void StandingChanged(const WorkerInfo& worker, const std::string& what);

 private:
  void Tell(const std::string& worker_id, std::string text);
  std::string LastSeen(const Worker& worker) const;

  const Clock& clock_;
  const FleetOptions& options_;
  DeferredCalls& deferred_;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_WORKER_EVENTS_H_

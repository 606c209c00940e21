#ifndef HONE_SERVER_FLEET_STANDING_CHANGES_H_
#define HONE_SERVER_FLEET_STANDING_CHANGES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/fleet/deferred_calls.h"
#include "server/fleet/deliveries.h"
#include "server/fleet/fleet_options.h"
#include "server/fleet/lease_book.h"
#include "server/fleet/standings.h"
#include "server/fleet/worker.h"
#include "server/fleet/worker_calls.h"
#include "server/fleet/worker_events.h"
#include "server/fleet/worker_list.h"
#include "server/fleet/worker_registry.h"

namespace hone::fleet {

// Changes the standings of workers, and applies them: takes leases back, tells the workers, and
// forgets those that were removed. Not thread-safe: the owner must lock.
class StandingChanges {
 public:
  struct Parts {
    const FleetOptions* options = nullptr;
    Standings* standings = nullptr;
    WorkerRegistry* registry = nullptr;
    LeaseBook* book = nullptr;
    Deliveries* deliveries = nullptr;
    WorkerCalls* calls = nullptr;
    WorkerEvents* events = nullptr;
    const WorkerList* list = nullptr;
    DeferredCalls* deferred = nullptr;
  };
  // REQUIRES: the parts outlive this object.
  explicit StandingChanges(const Parts& parts) : parts_(parts) {}

  // See the methods of Fleet.
  absl::StatusOr<WorkerInfo> Drain(const std::string& id, bool resume);
  absl::StatusOr<int> Remove(const std::string& id,
                             const std::optional<std::string>& remembered = std::nullopt);
  // Marks a worker whose results are not trusted. Leaves its held call to the caller.
  void Distrust(const std::string& id, const std::string& why);

 private:
  // Takes back the leases that a worker may no longer hold after its standing has changed, under
  // any of its names. Returns their number. Leaves the held call of this name to the caller.
  int Apply(const std::string& id);
  int ApplyTo(Worker& worker);
  // Answers the calls of a removed worker under all its names, and forgets it.
  void Dismiss(const std::string& id);

  const Parts parts_;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_STANDING_CHANGES_H_

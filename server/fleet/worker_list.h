#ifndef HONE_SERVER_FLEET_WORKER_LIST_H_
#define HONE_SERVER_FLEET_WORKER_LIST_H_

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "server/fleet/fleet_options.h"
#include "server/fleet/lease_book.h"
#include "server/fleet/standings.h"
#include "server/fleet/worker.h"
#include "server/fleet/worker_calls.h"
#include "server/fleet/worker_registry.h"

namespace hone::fleet {

// Describes workers for lists and look-ups. Not thread-safe: the owner must lock.
class WorkerList {
 public:
  struct Parts {
    const Clock* clock = nullptr;
    const FleetOptions* options = nullptr;
    const Standings* standings = nullptr;
    const WorkerRegistry* registry = nullptr;
    const LeaseBook* book = nullptr;
    const WorkerCalls* calls = nullptr;
  };
  // REQUIRES: the parts outlive this object.
  explicit WorkerList(const Parts& parts) : parts_(parts) {}

  // Describes a worker. Of one that is not registered, only the name and the standing are known.
  WorkerInfo Of(const std::string& id) const;
  // See Fleet::FindWorker, Fleet::Workers, Fleet::KnownWorkers and Fleet::IsServed.
  std::optional<WorkerInfo> Find(const std::string& id) const;
  std::vector<WorkerInfo> Registered() const;
  std::vector<WorkerInfo> Known() const;
  bool IsServed(const std::string& target_key) const;
  // See Fleet::FindSilentWork.
  std::optional<SilentWork> FindSilentWork(const std::string& job_id) const;

 private:
  std::vector<Activity> ActivitiesOf(const std::string& id, absl::Time now) const;
  // Whether a worker that is connected still calls.
  bool IsCalling(const Worker& worker) const;

  const Parts parts_;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_WORKER_LIST_H_

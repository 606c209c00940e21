#ifndef HONE_SERVER_FLEET_DISPATCHER_H_
#define HONE_SERVER_FLEET_DISPATCHER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/fleet/artifact_cache.h"
#include "server/fleet/fleet_options.h"
#include "server/fleet/lease_book.h"
#include "server/fleet/worker_registry.h"

namespace hone::fleet {

// Decides which worker gets which item: grants leases, finds leases that idle workers can take from
// busy ones, and finds items that no worker can do. Not thread-safe: the owner must lock.
class Dispatcher {
 public:
  // REQUIRES: all arguments outlive this object.
  Dispatcher(const FleetOptions* options, const ArtifactCache* artifacts,
             const Standings* standings, WorkerRegistry* registry, LeaseBook* book)
      : options_(*options),
        artifacts_(*artifacts),
        standings_(*standings),
        registry_(*registry),
        book_(*book) {}

  // Whether the lane's items wait for one particular worker, and that worker can take them.
  bool IsPinned(const Lane& lane) const;
  // Whether the worker could ever take items of the lane.
  bool Serves(const Lane& lane, const Worker& worker) const;
  // See Fleet::AnotherRunner.
  std::string AnotherRunner(const std::string& target_key,
                            const std::vector<std::string>& besides) const;
  // See Fleet::Rebuilder.
  std::string Rebuilder(const std::string& target_key, const BuilderVersion& version,
                        const std::string& built_by, const std::vector<std::string>& besides) const;
  // Grants the worker leases for its free slots, until the answer has kAnswerBytes: a trace may
  // have megabytes, and a message at most 16 MiB. The next call gets the others. `bytes`: what the
  // answer has before.
  static constexpr size_t kAnswerBytes = 4 << 20;
  std::vector<LeaseGrant> Grant(Worker& worker, absl::Time now, size_t bytes);
  // The size of the long texts of a lease.
  static size_t BytesOf(const LeaseGrant& grant) {
    return grant.work->workload.size() + (grant.build ? grant.work->space.size() : 0);
  }
  LeaseGrant Describe(const Lease& lease, absl::Time now) const;

  // Leases that an idle worker takes from a busy one, after they were queued there for
  // `steal_after`.
  struct Theft {
    Worker* thief = nullptr;
    Worker* victim = nullptr;
    std::vector<std::string> leases;
  };
  std::vector<Theft> FindThefts(const std::set<std::string>& idle, absl::Time now) const;

  // Returns waiting items that must fail, with the reason: the artifact that they name is gone. If
  // only the artifact of an item's own build is gone, the item is queued to be built again.
  std::vector<std::pair<int64_t, absl::Status>> FindHopeless(absl::Time now);

 private:
  // Leases that may be taken from their workers, by worker.
  using Stealable = std::map<std::string, std::vector<std::string>>;
  Stealable FindStealable(absl::Time now) const;
  Theft FindTheft(Worker& thief, const Stealable& stealable) const;
  // Whether the worker may take an item of the lane now.
  bool IsOpen(const Lane& lane, const Worker& worker) const;
  bool Fits(const TrackedItem& item, const std::string& worker_id) const;
  // Whether the worker must take only suspects now.
  bool GoesSolo(Worker& worker) const;

  const FleetOptions& options_;
  const ArtifactCache& artifacts_;
  const Standings& standings_;
  WorkerRegistry& registry_;
  LeaseBook& book_;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_DISPATCHER_H_

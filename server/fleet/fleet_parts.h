#ifndef HONE_SERVER_FLEET_FLEET_PARTS_H_
#define HONE_SERVER_FLEET_FLEET_PARTS_H_

#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "common/base/clock.h"
#include "server/fleet/artifact_cache.h"
#include "server/fleet/fleet_options.h"
#include "server/fleet/lease_book.h"
#include "server/fleet/standings.h"
#include "server/fleet/worker_registry.h"

namespace hone::fleet {

// Collects callbacks while a lock is held. The owner runs them after it has released the lock. Not
// thread-safe: the owner must lock.
class DeferredCalls {
 public:
  // Adds the call done(arguments...).
  template <typename Done, typename... Arguments>
  void Add(Done done, Arguments... arguments) {
    calls_.push_back([done = std::move(done), ... arguments = std::move(arguments)]() mutable {
      std::move(done)(std::move(arguments)...);
    });
  }
  // Returns the calls that were added since the last Take, in order.
  std::vector<absl::AnyInvocable<void() &&>> Take() { return std::exchange(calls_, {}); }

 private:
  std::vector<absl::AnyInvocable<void() &&>> calls_;
};

// What the parts of a fleet share. The fleet owns it, and its lock guards it.
struct FleetParts {
  const Clock& clock;
  const FleetOptions& options;
  const ArtifactCache& artifacts;
  Standings& standings;
  WorkerRegistry& registry;
  LeaseBook& book;
  DeferredCalls& deferred;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_FLEET_PARTS_H_

#ifndef HONE_SERVER_FLEET_DEFERRED_CALLS_H_
#define HONE_SERVER_FLEET_DEFERRED_CALLS_H_

#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"

namespace hone::fleet {

// Callbacks that were called for under a lock, and that run once it is released. Not thread-safe:
// its owner locks.
class DeferredCalls {
 public:
  // Calls done(arguments...) later.
  template <typename Done, typename... Arguments>
  void Add(Done done, Arguments... arguments) {
    calls_.push_back([done = std::move(done), ... arguments = std::move(arguments)]() mutable {
      std::move(done)(std::move(arguments)...);
    });
  }
  // The calls since the last Take, in order.
  std::vector<absl::AnyInvocable<void() &&>> Take() { return std::exchange(calls_, {}); }

 private:
  std::vector<absl::AnyInvocable<void() &&>> calls_;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_DEFERRED_CALLS_H_

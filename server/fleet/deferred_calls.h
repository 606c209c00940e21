#ifndef HONE_SERVER_FLEET_DEFERRED_CALLS_H_
#define HONE_SERVER_FLEET_DEFERRED_CALLS_H_

#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"

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

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_DEFERRED_CALLS_H_

#ifndef HONE_SERVER_FLEET_TARGET_WAITS_H_
#define HONE_SERVER_FLEET_TARGET_WAITS_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone::fleet {

struct TargetChoice {
  std::string key;
  std::string text;
};
using TargetDone = absl::AnyInvocable<void(absl::StatusOr<TargetChoice>) &&>;

// Calls that wait for a worker of a target, by the target's key; "" stands for the only target
// there is. Not thread-safe: its owner locks.
class TargetWaits {
 public:
  void Add(const std::string& key, absl::Time deadline, TargetDone done);
  // Takes out every call that waits for the key.
  std::vector<TargetDone> Take(const std::string& key);
  // Takes out the calls whose deadline has come, with their keys; with InfiniteFuture all calls.
  std::vector<std::pair<std::string, TargetDone>> TakeExpired(absl::Time now);
  size_t size() const { return waits_.size(); }

 private:
  struct Wait {
    absl::Time deadline;
    TargetDone done;
  };
  std::multimap<std::string, Wait> waits_;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_TARGET_WAITS_H_

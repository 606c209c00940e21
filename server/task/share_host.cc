#include "server/task/share_host.h"

#include <utility>

#include "absl/status/statusor.h"
#include "common/base/steady_clock.h"

namespace hone::task {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(5);

}  // namespace

HostLock ShareHost(bool respect) {
  if (!respect) return HostLock();
  absl::StatusOr<HostLock> lock =
      HostLock::Acquire(HostLock::Mode::kShared, SteadyNow() + kPatience);
  return lock.ok() ? *std::move(lock) : HostLock();
}

}  // namespace hone::task

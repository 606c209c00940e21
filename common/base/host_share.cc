#include "common/base/host_share.h"

#include <utility>

#include "absl/status/statusor.h"
#include "common/base/steady_clock.h"

namespace hone {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(5);

thread_local HostShare* share_of_thread = nullptr;

}  // namespace

HostLock ShareHost(bool respect, const std::string& path) {
  if (!respect) return HostLock();
  absl::StatusOr<HostLock> lock =
      HostLock::Acquire(HostLock::Mode::kShared, SteadyNow() + kPatience, path);
  return lock.ok() ? *std::move(lock) : HostLock();
}

HostShare::HostShare(bool respect, const std::string& path) : lock_(ShareHost(respect, path)) {
  share_of_thread = this;
}

HostShare::~HostShare() { share_of_thread = nullptr; }

void YieldToTimers() {
  // On timeout the caller continues without the lock.
  if (share_of_thread != nullptr) {
    share_of_thread->lock_.YieldToTimers(SteadyNow() + kPatience).IgnoreError();
  }
}

}  // namespace hone

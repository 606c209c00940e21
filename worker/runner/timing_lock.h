#ifndef HONE_WORKER_RUNNER_TIMING_LOCK_H_
#define HONE_WORKER_RUNNER_TIMING_LOCK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/host_lock.h"

namespace hone::runner {

// What a process holds while it times kernels on a device: the host's lock, and the lock of the
// device if it is not a part of the host. Processes with different GPUs time at the same time. No
// process builds meanwhile, because a build disturbs the launches of kernels.
class TimingLock {
 public:
  // Creates the files of the lock with this path, which must happen before the process enters its
  // sandbox: those of the host, and one for each GPU. Returns their paths. Errors as for
  // FileLock::Open.
  static absl::StatusOr<std::vector<std::string>> MakeFiles(const std::string& path);

  // Waits for the lock of a device, see Device::own_lock. Errors as for HostLock::Acquire.
  absl::Status Acquire(const std::string& path, const std::string& device, absl::Time deadline);
  bool held() const { return host_.held(); }
  // No effect if it is not held.
  void Release();

 private:
  HostLock host_;
  FileLock device_;
};

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_TIMING_LOCK_H_

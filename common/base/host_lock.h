#ifndef HONE_COMMON_BASE_HOST_LOCK_H_
#define HONE_COMMON_BASE_HOST_LOCK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/file_lock.h"

namespace hone {

// A host-wide lock that keeps Hone processes from disturbing each other's timings. Timers have
// priority: a new shared holder waits while a timer waits or runs, so shared holders must release
// the lock often (every few tens of milliseconds). Likewise, a new device timer waits while an
// exclusive timer waits, or a shared holder that has waited for a second.
//
// It uses three files. The holders of the lock (path) are shared ones or an exclusive timer; the
// holders of path + ".devices" are device timers or an exclusive timer. Everybody passes the gate
// (path + ".gate"), where an exclusive timer stays. A shared holder enters only when there are no
// device timers, and a device timer waits until the shared holders have left. Not recursive.
// Move-only; a moved-from lock holds nothing. Thread-compatible.
class HostLock {
 public:
  enum class Mode {
    kShared,     // while building, evaluating or training
    kDevice,     // while timing on a device that shares nothing with other devices or the host
    kExclusive,  // while timing on the host's cores or in its memory
  };

  // "/tmp/hone-timing.lock", shared by all users of the host.
  static std::string DefaultPath();
  // The files of the lock with this path.
  static std::vector<std::string> Files(const std::string& path);

  // Waits for the lock. DeadlineExceeded: it was not free in time. PermissionDenied, Internal: the
  // files cannot be created or opened; the message names the path.
  static absl::StatusOr<HostLock> Acquire(Mode mode, absl::Time deadline = absl::InfiniteFuture(),
                                          const std::string& path = DefaultPath());

  HostLock() = default;  // holds nothing
  HostLock(HostLock&& other) = default;
  HostLock& operator=(HostLock&& other) = default;

  bool held() const { return lock_.is_open(); }
  // Releases the lock now. No effect if it is not held.
  void Release();
  // Lets a waiting timer go first: releases a shared lock and takes it again. Returns at once if no
  // timer waits. Errors as for Acquire; the lock is then not held.
  absl::Status YieldToTimers(absl::Time deadline = absl::InfiniteFuture());

 private:
  absl::Status EnterShared(absl::Time deadline);
  absl::Status EnterDevice(absl::Time deadline);
  absl::Status EnterExclusive(absl::Time deadline);

  Mode mode_ = Mode::kShared;
  std::string path_;
  FileLock lock_, gate_, devices_;  // all are open while the lock is held
};

}  // namespace hone

#endif  // HONE_COMMON_BASE_HOST_LOCK_H_

#ifndef HONE_COMMON_BASE_HOST_LOCK_H_
#define HONE_COMMON_BASE_HOST_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone {

// A host-wide lock that keeps Hone processes from disturbing each other's timings. It is held
// exclusively while a kernel is timed, and shared while building, evaluating or training. Timers
// have priority: a new shared holder waits while a timer waits or runs, so shared holders must
// release the lock often (every few tens of milliseconds).
//
// It uses flock on two files: the lock and its gate (path + ".gate"). A timer locks the gate, then
// the lock, and keeps both. A shared holder locks the gate, takes the lock and unlocks the gate.
// The kernel frees both when the holder dies. Not recursive. Move-only; a moved-from lock holds
// nothing. Thread-compatible.
class HostLock {
 public:
  enum class Mode { kShared, kExclusive };

  // "/tmp/hone-timing.lock", shared by all users of the host.
  static std::string DefaultPath();

  // Waits for the lock. DeadlineExceeded: it was not free in time. PermissionDenied, Internal: the
  // files cannot be created or opened; the message names the path.
  static absl::StatusOr<HostLock> Acquire(Mode mode, absl::Time deadline = absl::InfiniteFuture(),
                                          const std::string& path = DefaultPath());

  HostLock() = default;  // holds nothing
  HostLock(HostLock&& other) noexcept;
  HostLock& operator=(HostLock&& other) noexcept;
  ~HostLock() { Release(); }

  bool held() const { return lock_fd_ >= 0; }
  // Releases the lock now. No effect if it is not held.
  void Release();
  // Lets a waiting timer go first: releases a shared lock and takes it again. Returns at once if no
  // timer waits. Errors as for Acquire; the lock is then not held.
  absl::Status YieldToTimers(absl::Time deadline = absl::InfiniteFuture());

 private:
  Mode mode_ = Mode::kShared;
  std::string path_;
  int lock_fd_ = -1;
  int gate_fd_ = -1;  // open while lock_fd_ is; only a timer keeps it locked
};

}  // namespace hone

#endif  // HONE_COMMON_BASE_HOST_LOCK_H_

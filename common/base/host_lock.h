#ifndef HONE_COMMON_BASE_HOST_LOCK_H_
#define HONE_COMMON_BASE_HOST_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone {

// The host-wide timing lock that every Hone process of a machine respects, so that nothing of ours
// disturbs a timing: held exclusively while a kernel is timed, shared while building, evaluating or
// training. Timers have priority: a new shared holder waits as long as a timer waits or times, so a
// shared holder lets go often (every few 10 ms).
//
// Two files, locked with flock: the lock, and its gate (path + ".gate"). A timer takes the gate and
// then the lock, and keeps both; a shared holder passes the gate, takes the lock and leaves the
// gate open. The kernel frees both when the holder dies. Not recursive. Move-only; a moved-from
// lock holds nothing; thread-compatible.
class HostLock {
 public:
  enum class Mode { kShared, kExclusive };

  // "/tmp/hone-timing.lock": one for all users of the host.
  static std::string DefaultPath();

  // Waits for the lock. DeadlineExceeded: not free in time. PermissionDenied / Internal: the files
  // cannot be made or opened; the message names the path.
  static absl::StatusOr<HostLock> Acquire(Mode mode, absl::Time deadline = absl::InfiniteFuture(),
                                          const std::string& path = DefaultPath());

  HostLock() = default;  // holds nothing
  HostLock(HostLock&& other) noexcept;
  HostLock& operator=(HostLock&& other) noexcept;
  ~HostLock() { Release(); }

  bool held() const { return lock_fd_ >= 0; }
  // Lets go now. Nothing happens when nothing is held.
  void Release();
  // For a shared holder at a point where it could pause: lets go and takes the lock again when a
  // timer waits. Returns at once when none does. Errors as Acquire; then nothing is held.
  absl::Status YieldToTimers(absl::Time deadline = absl::InfiniteFuture());

 private:
  Mode mode_ = Mode::kShared;
  std::string path_;
  int lock_fd_ = -1;
  int gate_fd_ = -1;  // open as long as lock_fd_ is; locked only by a timer
};

}  // namespace hone

#endif  // HONE_COMMON_BASE_HOST_LOCK_H_

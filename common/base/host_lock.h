#ifndef HONE_COMMON_BASE_HOST_LOCK_H_
#define HONE_COMMON_BASE_HOST_LOCK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone {

// A lock on a file, which processes of all users share (flock). The kernel frees it when its holder
// dies. Not recursive. Move-only. Thread-compatible.
class FileLock {
 public:
  enum class Mode { kShared, kExclusive };

  // Opens the file without locking it. Creates it, readable for all users, if it does not exist.
  // PermissionDenied, Internal: it cannot be created or opened; the message names the path.
  static absl::StatusOr<FileLock> Open(const std::string& path);

  FileLock() = default;  // has no file
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock() { Close(); }

  // REQUIRES of all below: is_open().
  // Waits for the lock. DeadlineExceeded: it was not free in time.
  absl::Status Lock(Mode mode, absl::Time deadline);
  // Returns false if the lock is not free now.
  bool TryLock(Mode mode);
  void Unlock();

  bool is_open() const { return fd_ >= 0; }
  // Frees the lock and the file. No effect if it is not open.
  void Close();

 private:
  std::string path_;
  int fd_ = -1;
};

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

// Takes the host's timing lock in shared mode. After a few seconds it gives up and returns a lock
// that holds nothing, so that a stuck timer cannot block the caller. With `respect` false it does
// not try.
HostLock ShareHost(bool respect, const std::string& path = HostLock::DefaultPath());

// Holds ShareHost's lock for the calling thread. At most one per thread at a time.
class HostShare {
 public:
  explicit HostShare(bool respect, const std::string& path = HostLock::DefaultPath());
  ~HostShare();
  HostShare(const HostShare&) = delete;
  HostShare& operator=(const HostShare&) = delete;

 private:
  friend void YieldToTimers();
  HostLock lock_;
};

// Lets waiting timers go first if the calling thread has a HostShare. Long computations call it
// every few milliseconds; it costs about a microsecond otherwise. Like ShareHost, it gives up after
// a few seconds.
void YieldToTimers();

}  // namespace hone

#endif  // HONE_COMMON_BASE_HOST_LOCK_H_

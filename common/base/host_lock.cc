#include "common/base/host_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/steady_clock.h"

namespace hone {
namespace {

// Opens the lock file and creates it, readable for all users, if it does not exist. The first
// attempt omits O_CREAT: in a sticky folder, O_CREAT fails on another user's file.
absl::StatusOr<int> OpenLockFile(const std::string& path) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) return fd;
    if (errno != ENOENT) return ErrnoStatus(errno, absl::StrCat("open the timing lock ", path));
    fd = open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd >= 0) {
      fchmod(fd, 0644);  // regardless of the umask: flock needs only read access
      return fd;
    }
    if (errno != EEXIST) return ErrnoStatus(errno, absl::StrCat("create the timing lock ", path));
  }
  return absl::InternalError(absl::StrCat("the timing lock ", path, " appears and disappears"));
}

absl::Status Lock(int fd, int operation, absl::Time deadline, const std::string& path) {
  if (deadline == absl::InfiniteFuture()) {
    while (flock(fd, operation) != 0) {
      if (errno != EINTR) return ErrnoStatus(errno, absl::StrCat("lock ", path));
    }
    return absl::OkStatus();
  }
  // flock has no timeout: poll with growing pauses.
  absl::Duration pause = absl::Microseconds(50);
  while (flock(fd, operation | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return ErrnoStatus(errno, absl::StrCat("lock ", path));
    }
    if (SteadyNow() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat("the timing lock ", path, " is not free"));
    }
    absl::SleepFor(pause);
    pause = std::min(pause * 2, absl::Milliseconds(2));
  }
  return absl::OkStatus();
}

}  // namespace

std::string HostLock::DefaultPath() { return "/tmp/hone-timing.lock"; }

absl::StatusOr<HostLock> HostLock::Acquire(Mode mode, absl::Time deadline,
                                           const std::string& path) {
  HostLock lock;
  lock.mode_ = mode;
  lock.path_ = path;
  HONE_ASSIGN_OR_RETURN(lock.lock_fd_, OpenLockFile(path));
  HONE_ASSIGN_OR_RETURN(lock.gate_fd_, OpenLockFile(absl::StrCat(path, ".gate")));
  const int operation = mode == Mode::kExclusive ? LOCK_EX : LOCK_SH;
  HONE_RETURN_IF_ERROR(Lock(lock.gate_fd_, operation, deadline, path));
  HONE_RETURN_IF_ERROR(Lock(lock.lock_fd_, operation, deadline, path));
  if (mode == Mode::kShared) flock(lock.gate_fd_, LOCK_UN);
  return lock;
}

HostLock::HostLock(HostLock&& other) noexcept { *this = std::move(other); }

HostLock& HostLock::operator=(HostLock&& other) noexcept {
  if (this == &other) return *this;
  Release();
  mode_ = other.mode_;
  path_ = std::move(other.path_);
  lock_fd_ = std::exchange(other.lock_fd_, -1);
  gate_fd_ = std::exchange(other.gate_fd_, -1);
  return *this;
}

void HostLock::Release() {
  // Closing the only descriptor of an open file frees its lock. Children do not inherit it
  // (O_CLOEXEC).
  for (int* fd : {&lock_fd_, &gate_fd_}) {
    if (*fd >= 0) close(std::exchange(*fd, -1));
  }
}

absl::Status HostLock::YieldToTimers(absl::Time deadline) {
  if (!held() || mode_ == Mode::kExclusive) return absl::OkStatus();
  if (flock(gate_fd_, LOCK_SH | LOCK_NB) == 0) {
    flock(gate_fd_, LOCK_UN);
    return absl::OkStatus();
  }
  Release();
  HONE_ASSIGN_OR_RETURN(*this, Acquire(Mode::kShared, deadline, std::string(path_)));
  return absl::OkStatus();
}

}  // namespace hone

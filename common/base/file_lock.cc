#include "common/base/file_lock.h"

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
#include "common/base/steady_clock.h"

namespace hone {
namespace {

int OperationOf(FileLock::Mode mode) {
  return mode == FileLock::Mode::kExclusive ? LOCK_EX : LOCK_SH;
}

}  // namespace

absl::StatusOr<FileLock> FileLock::Open(const std::string& path) {
  FileLock lock;
  lock.path_ = path;
  // The first attempt omits O_CREAT: in a sticky folder, O_CREAT fails on another user's file.
  for (int attempt = 0; attempt < 2; ++attempt) {
    lock.fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (lock.is_open()) return lock;
    if (errno != ENOENT) return ErrnoStatus(errno, absl::StrCat("open the timing lock ", path));
    lock.fd_ = open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (lock.is_open()) {
      fchmod(lock.fd_, 0644);  // regardless of the umask: flock needs only read access
      return lock;
    }
    if (errno != EEXIST) return ErrnoStatus(errno, absl::StrCat("create the timing lock ", path));
  }
  return absl::InternalError(absl::StrCat("the timing lock ", path, " appears and disappears"));
}

FileLock::FileLock(FileLock&& other) noexcept { *this = std::move(other); }

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  if (this == &other) return *this;
  Close();
  path_ = std::move(other.path_);
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

absl::Status FileLock::Lock(Mode mode, absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) {
    while (flock(fd_, OperationOf(mode)) != 0) {
      if (errno != EINTR) return ErrnoStatus(errno, absl::StrCat("lock ", path_));
    }
    return absl::OkStatus();
  }
  // flock has no timeout: poll with growing pauses.
  absl::Duration pause = absl::Microseconds(50);
  while (!TryLock(mode)) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return ErrnoStatus(errno, absl::StrCat("lock ", path_));
    }
    if (SteadyNow() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat("the timing lock ", path_, " is not free"));
    }
    absl::SleepFor(pause);
    pause = std::min(pause * 2, absl::Milliseconds(2));
  }
  return absl::OkStatus();
}

bool FileLock::TryLock(Mode mode) { return flock(fd_, OperationOf(mode) | LOCK_NB) == 0; }

void FileLock::Unlock() { flock(fd_, LOCK_UN); }

void FileLock::Close() {
  // Closing the only descriptor of an open file frees its lock. Children do not inherit it
  // (O_CLOEXEC).
  if (is_open()) close(std::exchange(fd_, -1));
}

}  // namespace hone

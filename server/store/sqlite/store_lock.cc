#include "server/store/sqlite/store_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"

namespace hone::store {

absl::StatusOr<StoreLock> StoreLock::Acquire(const std::string& store_path) {
  const std::string path = absl::StrCat(store_path, ".lock");
  // Close-on-exec: a child process that outlives the server must not hold its store.
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    const absl::Status status =
        ErrnoStatus(errno, absl::StrCat("store ", store_path, ": open its lock file ", path));
    if (!absl::IsPermissionDenied(status)) return status;
    return absl::PermissionDeniedError(
        absl::StrCat(status.message(), "; make the store and its folder writable for this user"));
  }
  StoreLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, absl::StrCat("lock ", path));
    char owner[32] = {};
    const ssize_t size = pread(fd, owner, sizeof owner - 1, 0);
    const absl::string_view pid =
        absl::StripAsciiWhitespace(absl::string_view(owner, size > 0 ? size : 0));
    return absl::UnavailableError(absl::StrCat("store ", store_path, " is open in process ",
                                               pid.empty() ? "(unknown)" : pid,
                                               ": the server process is its only opener. Ask that "
                                               "server instead, stop it, or name another "
                                               "store"));
  }
  // The process id is used only in the message above, so errors such as a full disk are ignored.
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd, 0) == 0 && pwrite(fd, pid.data(), pid.size(), 0) < 0) errno = 0;
  return lock;
}

StoreLock::StoreLock(StoreLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

StoreLock::~StoreLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace hone::store

#ifndef HONE_SERVER_STORE_SQLITE_STORE_LOCK_H_
#define HONE_SERVER_STORE_SQLITE_STORE_LOCK_H_

#include <string>

#include "absl/status/statusor.h"

namespace hone::store {

// The lock of one process on a store: an flock on "<path>.lock", which the kernel releases when the
// process ends for any reason. SQLite itself would allow several processes, which would get
// "database is locked" errors and, with SQLite before 3.51.3, could damage the log. The file is not
// removed. It contains the holder's process id, which the error message names. Movable.
class StoreLock {
 public:
  // Unavailable: another store object, in this or another process, has the lock; the message names
  // the process. PermissionDenied, ResourceExhausted, NotFound: the lock file cannot be created.
  static absl::StatusOr<StoreLock> Acquire(const std::string& store_path);

  StoreLock(StoreLock&& other) noexcept;
  StoreLock& operator=(StoreLock&&) = delete;
  ~StoreLock();

 private:
  explicit StoreLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_STORE_LOCK_H_

#ifndef HONE_SERVER_STORE_SQLITE_STORE_LOCK_H_
#define HONE_SERVER_STORE_SQLITE_STORE_LOCK_H_

#include <string>

#include "absl/status/statusor.h"

namespace hone::store {

// The claim of one process on a store: an flock on "<path>.lock", which the kernel drops when the
// process ends, however it ends. SQLite would let several processes in; they would meet as
// "database is locked" and, with SQLite before 3.51.3, could damage the log. The file stays behind
// and holds the opener's process id for the message. Movable.
class StoreLock {
 public:
  // Unavailable: another store object, here or in another process, has it; the message names the
  // process. PermissionDenied, ResourceExhausted, NotFound: the lock file cannot be made.
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

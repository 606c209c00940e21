#ifndef HONE_SERVER_STORE_SQLITE_SQLITE_STORE_H_
#define HONE_SERVER_STORE_SQLITE_SQLITE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "server/store/store.h"

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

struct SqliteStoreOptions {
  // Maximum number of simultaneous reads; further reads wait.
  size_t max_readers = 16;
  // Checks the database in the background after opening. The first write waits for it (see
  // Soundness::AwaitCheck).
  bool check_integrity = true;
  // Of larger databases, only the rows are checked, a few milliseconds at a time (CheckRows).
  int64_t large_bytes = int64_t{256} << 20;
  // For the times of publications. Outlives the store; if null, the system's clock is used.
  const Clock* clock = nullptr;
};

// The same as OpenSqliteStore in store.h, with options.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path,
                                                       const SqliteStoreOptions& options);

// Returns the path without symbolic links, so that every name of a store has the same lock file.
// Creates the folder. InvalidArgument: the path does not name a file.
absl::StatusOr<std::string> CanonicalStorePath(const std::string& path);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_SQLITE_STORE_H_

#ifndef HONE_SERVER_STORE_SQLITE_SQLITE_STORE_H_
#define HONE_SERVER_STORE_SQLITE_SQLITE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/integrity_check.h"
#include "server/store/store.h"
#include "server/store/write_queue.h"

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

// Runs inside a transaction, possibly more than once; only the last run counts.
using SqliteApply = absl::AnyInvocable<absl::Status(SqliteConnection&)>;

// Commits groups of writes on the only connection that writes. If a write fails, only this write is
// undone. Between groups, copies the log into the database file. Changes nothing in a damaged
// store, and waits for the check of the file before the first change (Soundness::AwaitCheck).
class SqliteCommitter final : public GroupCommitter<SqliteApply> {
 public:
  // `checkpoint_pages`: the log is copied when it has this many pages. REQUIRES: `soundness`
  // outlives the committer.
  SqliteCommitter(std::unique_ptr<SqliteConnection> connection, Soundness* soundness,
                  int checkpoint_pages = 4000)
      : connection_(std::move(connection)),
        soundness_(*soundness),
        checkpoint_pages_(checkpoint_pages) {}
  ~SqliteCommitter() override;

  absl::Status Commit(const std::vector<QueuedWrite<SqliteApply>*>& writes) override;
  void AfterGroup() override;
  void HurryUp() override { soundness_.StopWaiting(); }

 private:
  // Savepoints take time, and nearly all writes succeed. Therefore savepoints are used only to
  // repeat a group in which a write has failed.
  absl::Status TryGroup(const std::vector<QueuedWrite<SqliteApply>*>& writes, bool savepoints);
  absl::Status ApplyOne(QueuedWrite<SqliteApply>& write);
  // Rolls the transaction back if it is still open, and returns `why`.
  absl::Status UndoAll(const absl::Status& why);

  const std::unique_ptr<SqliteConnection> connection_;
  Soundness& soundness_;
  const int checkpoint_pages_;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_SQLITE_STORE_H_

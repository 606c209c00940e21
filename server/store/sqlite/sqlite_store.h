#ifndef HONE_SERVER_STORE_SQLITE_SQLITE_STORE_H_
#define HONE_SERVER_STORE_SQLITE_SQLITE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"
#include "server/store/write_queue.h"

namespace hone::store {

// Marks a SQLite file as a Hone store: "HONE", in PRAGMA application_id.
inline constexpr int64_t kApplicationId = 0x484f4e45;

// The statements of each version of the schema, separated by semicolons: the first creates the
// tables, and each further one changes those of the version before it (PRAGMA user_version).
const std::vector<const char*>& SqliteMigrations();

// Checks that the database is empty, or a store that `migrations` can bring up to date. Changes
// nothing. A store of an older version is read completely, because the migration of a damaged store
// could lose what can still be saved. FailedPrecondition: the schema is newer than the last
// migration, or the database belongs to another program. DataLoss: the file is not a database, or
// is damaged.
absl::Status CheckVersion(SqliteConnection& connection, const std::vector<const char*>& migrations);

// Applies the missing migrations to an empty database or an older store, each in one transaction
// with its version. Does nothing if the schema is current. REQUIRES: CheckVersion returned OK.
// Errors are those of SqliteError; the schema before the failed migration is kept.
absl::Status Migrate(SqliteConnection& connection, const std::vector<const char*>& migrations);

// Compares the tables and indexes with those that `migrations` create up to the store's version.
// DataLoss: they differ; the message names the first difference. REQUIRES: CheckVersion returned
// OK.
absl::Status CheckSchema(SqliteConnection& connection, const std::vector<const char*>& migrations);

// What is known about damage of a store's file: the result of the check after opening it, and what
// reads and writes run into. A damaged store is only read. Thread-safe.
class Soundness {
 public:
  // OK, or the first damage that was found.
  absl::Status status();
  StoreHealth::Check check();

  // Takes note of damage in the result of a read or a write; other errors are ignored.
  void Note(const absl::Status& result);
  // `is_awaited`: the first write waits for the check, see AwaitCheck.
  void CheckBegins(bool is_awaited);
  // `result`: of an IntegrityCheck. An error other than damage means that the check was stopped.
  void CheckEnds(const absl::Status& result);

  // Waits until the check has ended, so that nothing is written to a damaged file, and returns
  // status(). Does not wait for the check of a large store, which takes minutes, and for others 5 s
  // at most.
  absl::Status AwaitCheck();
  // Ends every AwaitCheck, for a shutdown.
  void StopWaiting();

 private:
  void SetDamage(const absl::Status& damage) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  absl::Status damage_ ABSL_GUARDED_BY(mutex_);
  StoreHealth::Check check_ ABSL_GUARDED_BY(mutex_) = StoreHealth::Check::kNotChecked;
  bool is_awaited_ ABSL_GUARDED_BY(mutex_) = false;
};

// Reads the whole database (PRAGMA quick_check). DataLoss: the database is damaged; the message
// says how.
absl::Status QuickCheck(SqliteConnection& connection);

// Reads every row of every table, for a few milliseconds at a time and with longer breaks, so that
// the log can be copied and reused meanwhile and other threads are not disturbed. Unlike
// QuickCheck, does not read the indexes. DataLoss: a row cannot be read; the message says why.
absl::Status CheckRows(SqliteConnection& connection);

// Checks the database once on its own thread, so that opening a large store takes no time and
// damage is still found.
class IntegrityCheck {
 public:
  // Checks a database with QuickCheck, or a large one with CheckRows. Calls `on_end` on the check's
  // thread with the result. An error other than DataLoss means that the check was stopped.
  IntegrityCheck(std::unique_ptr<SqliteConnection> connection, bool is_large,
                 absl::AnyInvocable<void(const absl::Status&)> on_end);
  // Stops the check and waits for its end. SQLite before 3.41 does not check for interrupts within
  // a large table, so QuickCheck, which only small databases get, may take its time.
  ~IntegrityCheck();

 private:
  const std::unique_ptr<SqliteConnection> connection_;
  std::thread thread_;  // last: it uses the connection
};

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
  int64_t large_bytes = int64_t{64} << 20;
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

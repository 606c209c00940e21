#ifndef HONE_SERVER_STORE_SQLITE_INTEGRITY_CHECK_H_
#define HONE_SERVER_STORE_SQLITE_INTEGRITY_CHECK_H_

#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"

namespace hone::store {

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
  // Stops the check. If it does not stop, leaves its thread running: SQLite before 3.41 does not
  // check for interrupts within a large table.
  ~IntegrityCheck();

 private:
  struct State {
    std::unique_ptr<SqliteConnection> connection;
    absl::Notification ended;
    absl::Mutex mutex;
    // Null if no caller waits for the result any more.
    absl::AnyInvocable<void(const absl::Status&)> on_end ABSL_GUARDED_BY(mutex);
  };
  const std::shared_ptr<State> state_;  // shared with the thread
  std::thread thread_;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_INTEGRITY_CHECK_H_

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

namespace hone::store {

// Reads the whole database (PRAGMA quick_check). DataLoss: something is wrong, says what.
absl::Status QuickCheck(SqliteConnection& connection);

// Reads the whole database once on its own thread, so that opening a large store takes no time and
// damage is found all the same.
class IntegrityCheck {
 public:
  // Calls `on_end` on the check's thread with what QuickCheck says; another error than DataLoss: it
  // was broken off.
  IntegrityCheck(std::unique_ptr<SqliteConnection> connection,
                 absl::AnyInvocable<void(const absl::Status&)> on_end);
  // Breaks the check off, and leaves it behind where SQLite does not heed that: within a large
  // table versions before 3.41 do not look.
  ~IntegrityCheck();

 private:
  struct State {
    std::unique_ptr<SqliteConnection> connection;
    absl::Notification ended;
    absl::Mutex mutex;
    // Null: no caller waits for it any more.
    absl::AnyInvocable<void(const absl::Status&)> on_end ABSL_GUARDED_BY(mutex);
  };
  const std::shared_ptr<State> state_;  // the thread's, too
  std::thread thread_;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_INTEGRITY_CHECK_H_

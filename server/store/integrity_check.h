#ifndef HONE_SERVER_STORE_INTEGRITY_CHECK_H_
#define HONE_SERVER_STORE_INTEGRITY_CHECK_H_

#include <memory>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/store/sqlite_connection.h"

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
  // Breaks the check off.
  ~IntegrityCheck();

 private:
  const std::unique_ptr<SqliteConnection> connection_;
  std::thread thread_;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_INTEGRITY_CHECK_H_

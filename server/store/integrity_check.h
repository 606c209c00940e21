#ifndef HONE_SERVER_STORE_INTEGRITY_CHECK_H_
#define HONE_SERVER_STORE_INTEGRITY_CHECK_H_

#include <memory>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/store/sqlite_connection.h"

namespace hone::store {

// Reads the whole database once on its own thread (PRAGMA quick_check), so that opening a large
// store takes no time and damage is found all the same.
class IntegrityCheck {
 public:
  // Calls `on_damage` with DataLoss on the check's thread when something is wrong, else not.
  IntegrityCheck(std::unique_ptr<SqliteConnection> connection,
                 absl::AnyInvocable<void(absl::Status) &&> on_damage);
  // Breaks the check off.
  ~IntegrityCheck();

 private:
  absl::Status Check();

  const std::unique_ptr<SqliteConnection> connection_;
  std::thread thread_;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_INTEGRITY_CHECK_H_

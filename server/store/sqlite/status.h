#ifndef HONE_SERVER_STORE_SQLITE_STATUS_H_
#define HONE_SERVER_STORE_SQLITE_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

struct sqlite3;

namespace hone::store {

// Returns the status of the last failed call on `database`. `what` describes the attempt. The
// message contains the path and says what to do.
//   ResourceExhausted  the disk or the database is full
//   PermissionDenied   the file, its folder or the disk is read-only, or this user may not open it
//   DataLoss           not a database, or a damaged one (IsDamaged)
//   Unavailable        another program holds the lock for longer than the busy timeout
//   AlreadyExists      a uniqueness constraint
//   FailedPrecondition another constraint
//   InvalidArgument    a text or blob over SQLite's limit
//   Internal           anything else: an I/O error, a wrong statement
absl::Status SqliteError(sqlite3* database, const std::string& path, absl::string_view what);

// A DataLoss that says that the store's file is damaged, and what to do. IsDamaged tells it from
// other data that is lost, such as one record that cannot be decoded.
absl::Status DamagedError(const std::string& path, absl::string_view message);
bool IsDamaged(const absl::Status& status);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_STATUS_H_

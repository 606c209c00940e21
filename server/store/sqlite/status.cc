#include "server/store/sqlite/status.h"

#include <sqlite3.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace hone::store {
namespace {

constexpr char kDamaged[] = "hone.store/damaged";

absl::Status DiskFull(const std::string& path, const std::string& message) {
  return absl::ResourceExhaustedError(absl::StrCat(message, "; free space on the disk of ", path,
                                                   " and try again: nothing committed is lost"));
}

absl::Status ReadOnly(const std::string& path, const std::string& message) {
  return absl::PermissionDeniedError(
      absl::StrCat(message, "; make ", path, " and its folder writable for this user"));
}

// Returns the errno of the call that failed, or 0 if it is unknown. SQLite reports it for most
// statements, but not for COMMIT, for which it is stored at the file of the log.
int SystemErrno(sqlite3* database, int extended) {
  const int known = sqlite3_system_errno(database);
  if (known != 0 || extended != SQLITE_IOERR_WRITE) return known;
  sqlite3_file* log = nullptr;
  int last = 0;
  if (sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK &&
      log != nullptr && log->pMethods != nullptr) {
    log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &last);
  }
  return last;
}

}  // namespace

absl::Status DamagedError(const std::string& path, absl::string_view message) {
  absl::Status status = absl::DataLossError(absl::StrCat(
      message, "; stop the server, keep a copy of ", path,
      " and restore a backup (hone-server restore), or save what is readable with: sqlite3 '", path,
      "' .recover | sqlite3 recovered.db; without the file an empty store is made"));
  status.SetPayload(kDamaged, absl::Cord());
  return status;
}

bool IsDamaged(const absl::Status& status) { return status.GetPayload(kDamaged).has_value(); }

absl::Status SqliteError(sqlite3* database, const std::string& path, absl::string_view what) {
  const int extended = sqlite3_extended_errcode(database);
  std::string message = absl::StrCat("store ", path, ": ", what, ": ", sqlite3_errmsg(database));
  switch (extended & 0xff) {
    case SQLITE_FULL:
      return DiskFull(path, message);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return ReadOnly(path, message);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return DamagedError(path, message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(
          absl::StrCat(message, "; another program is writing to it: close it and try again"));
    case SQLITE_CONSTRAINT:
      if (extended == SQLITE_CONSTRAINT_UNIQUE || extended == SQLITE_CONSTRAINT_PRIMARYKEY ||
          extended == SQLITE_CONSTRAINT_ROWID) {
        return absl::AlreadyExistsError(message);
      }
      return absl::FailedPreconditionError(message);
    case SQLITE_TOOBIG:
      return absl::InvalidArgumentError(message);
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN: {
      const int system_errno = SystemErrno(database, extended);
      if (system_errno != 0) absl::StrAppend(&message, " (", std::strerror(system_errno), ")");
      if (system_errno == ENOSPC || system_errno == EDQUOT || system_errno == EFBIG) {
        return DiskFull(path, message);
      }
      if (system_errno == EACCES || system_errno == EPERM || system_errno == EROFS) {
        return ReadOnly(path, message);
      }
      return absl::InternalError(absl::StrCat(message, "; check the disk of ", path));
    }
    default:
      return absl::InternalError(message);
  }
}

}  // namespace hone::store

#ifndef HONE_SERVER_STORE_SQLITE_RESTORE_H_
#define HONE_SERVER_STORE_SQLITE_RESTORE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace hone::store {

struct RestoreReport {
  int64_t records = 0;
  int64_t size_bytes = 0;
  std::string kept_as;  // the new name of the previous store; "" if there was none
};

// Replaces the SQLite store at `path` by a copy of a backup or of another store file. The backup is
// checked completely first and is not changed. The previous store is renamed in its folder, with
// `now_unix_ms` in its new name. After any error or crash, `path` is one of the two stores. The
// restored store gets a new identity, because from now on its content differs from the store that
// was backed up. Unavailable: a server has the store open. FailedPrecondition: the backup is from a
// newer Hone or another program. DataLoss: it is damaged. NotFound: it is not a file.
// InvalidArgument: the backup and `path` are the same file. ResourceExhausted, PermissionDenied:
// the disk is full or cannot be written.
absl::StatusOr<RestoreReport> RestoreStore(const std::string& path, const std::string& backup,
                                           int64_t now_unix_ms);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_RESTORE_H_

#ifndef HONE_SERVER_STORE_SQLITE_RESTORE_H_
#define HONE_SERVER_STORE_SQLITE_RESTORE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace hone::store {

struct RestoreReport {
  int64_t records = 0;
  int64_t size_bytes = 0;
  std::string kept_as;  // the name that the store before has now; "" there was none
};

// Puts a copy of the backup, or of any store file, in the place of the SQLite store at `path`,
// which no server may have open. The backup is checked in full first and is not changed; the store
// that was there is kept under another name beside it. Whatever happens, `path` is one of the two.
// What is restored gets an identity of its own: from here on it goes another way than the store
// that the backup was made of. `now_unix_ms` is in the kept store's name. FailedPrecondition: the
// backup is of a newer Hone or of another program. DataLoss: it is damaged. NotFound: it is not
// a file. Unavailable: a server has the store open. InvalidArgument: both are one.
// ResourceExhausted, PermissionDenied: the disk.
absl::StatusOr<RestoreReport> RestoreStore(const std::string& path, const std::string& backup,
                                           int64_t now_unix_ms);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_RESTORE_H_

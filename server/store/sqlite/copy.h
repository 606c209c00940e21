#ifndef HONE_SERVER_STORE_SQLITE_COPY_H_
#define HONE_SERVER_STORE_SQLITE_COPY_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"

// Copies of a whole SQLite store: what backup and restore are made of.
namespace hone::store {

// Copies the database as it is when the call begins to the new file `to`, in steps with pauses
// between them, so that a disk is left for others. The source's connection holds one read
// transaction meanwhile: writers go on, and what they write is not in the copy. The copy is one
// file without a log beside it, on the disk. Cancelled: `cancelled` said so. Errors as SqliteError
// says. On an error `to` may be there in part.
absl::Status CopyDatabase(SqliteConnection& from, const std::string& to,
                          const std::function<bool()>& cancelled);

// Whether the file is a whole store of a schema that this program knows. Reads all of it.
// FailedPrecondition: a newer schema, or another program's database. DataLoss: not a database, cut
// short, damaged, or its tables are not what its schema says. NotFound: no such file.
absl::StatusOr<BackupReport> CheckStoreFile(const std::string& path);

// Makes what was written to the file, and the folder's entry of it, outlive a power loss.
absl::Status SyncFile(const std::string& path);
absl::Status SyncFolderOf(const std::string& path);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_COPY_H_

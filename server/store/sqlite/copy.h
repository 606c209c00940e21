#ifndef HONE_SERVER_STORE_SQLITE_COPY_H_
#define HONE_SERVER_STORE_SQLITE_COPY_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"

// Copies of a whole SQLite store, for backup and restore.
namespace hone::store {

// Copies the database to the new file `to`, in its state at the beginning of the call. Pauses
// between the steps leave time for other users of the disk. The source's connection holds a read
// transaction meanwhile: writers continue, and their writes are not in the copy. The copy is one
// synced file without a log. Cancelled: `cancelled` returned true. Other errors are those of
// SqliteError. After an error, `to` may exist and be incomplete.
absl::Status CopyDatabase(SqliteConnection& from, const std::string& to,
                          const std::function<bool()>& cancelled);

// Checks that the file is a complete store with a schema that this program knows. Reads the whole
// file. FailedPrecondition: the schema is newer, or the database belongs to another program.
// DataLoss: the file is not a database, is truncated or damaged, or its tables differ from its
// schema. NotFound: there is no such file.
absl::StatusOr<BackupReport> CheckStoreFile(const std::string& path);

// Syncs a file and its entry in the folder, so that both survive a power loss.
absl::Status SyncFile(const std::string& path);
absl::Status SyncFolderOf(const std::string& path);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_COPY_H_

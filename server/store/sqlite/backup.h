#ifndef HONE_SERVER_STORE_SQLITE_BACKUP_H_
#define HONE_SERVER_STORE_SQLITE_BACKUP_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

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

// See Store::Backup. `store`: the path of a SQLite store that this process has open.
absl::StatusOr<BackupReport> BackUp(const std::string& store, const std::string& path,
                                    const std::function<bool()>& cancelled);

// Copies an older store to `<path>.before-schema-N` if `migrations` have schema N for it, so that
// the earlier Hone can be used again. Does nothing for a new or current store, or if a complete
// copy is there, from a migration that failed. Errors are those of CopyDatabase; the copy is then
// missing.
absl::Status BackUpBeforeMigration(SqliteConnection& store,
                                   const std::vector<const char*>& migrations);

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

#endif  // HONE_SERVER_STORE_SQLITE_BACKUP_H_

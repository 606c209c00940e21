#include "server/store/sqlite/restore.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/copy.h"
#include "server/store/sqlite/sqlite_store.h"
#include "server/store/sqlite/store_lock.h"

namespace hone::store {
namespace {

// Copies the store's log into its file, so that one file contains the whole store. A damaged store
// is not changed.
void EmptyLog(const std::string& path) {
  absl::StatusOr<std::unique_ptr<SqliteConnection>> connection =
      SqliteConnection::OpenForWriting(path);
  // Closing the last connection of a database empties its log.
  if (connection.ok())
    (*connection)->QueryInt64("SELECT COUNT(*) FROM sqlite_schema").IgnoreError();
}

// Gives the store at `path` and its log a second name.
absl::Status Keep(const std::string& path, const std::string& kept) {
  EmptyLog(path);
  if (link(path.c_str(), kept.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("keep ", path, " as ", kept));
  }
  // A log that could not be emptied must not be used with another database.
  for (const char* const ending : {"-wal", "-shm"}) {
    const std::string log = absl::StrCat(path, ending);
    if (rename(log.c_str(), absl::StrCat(kept, ending).c_str()) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, absl::StrCat("move ", log));
    }
  }
  return absl::OkStatus();
}

absl::Status GiveIdentity(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteConnection> connection,
                        SqliteConnection::OpenForWriting(path));
  HONE_ASSIGN_OR_RETURN(
      const int64_t known,
      connection->QueryInt64("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'identity'"));
  if (known == 0) return absl::OkStatus();  // an older schema gets one when it is opened
  return connection->Execute("UPDATE identity SET id = lower(hex(randomblob(8)))");
}

}  // namespace

absl::StatusOr<RestoreReport> RestoreStore(const std::string& path, const std::string& backup,
                                           int64_t now_unix_ms) {
  HONE_ASSIGN_OR_RETURN(const std::string store, CanonicalStorePath(path));
  std::error_code error;
  if (std::filesystem::equivalent(store, backup, error)) {
    return absl::InvalidArgumentError(absl::StrCat(backup, " is the store itself"));
  }
  HONE_ASSIGN_OR_RETURN(const StoreLock lock, StoreLock::Acquire(store));
  HONE_RETURN_IF_ERROR(CheckStoreFile(backup).status());
  const std::string copy = absl::StrCat(store, ".restoring");
  std::filesystem::remove(copy, error);  // left by an interrupted restore
  const auto remove_copy = absl::MakeCleanup([&] { std::filesystem::remove(copy, error); });
  {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteConnection> from,
                          SqliteConnection::OpenForReading(backup));
    HONE_RETURN_IF_ERROR(CopyDatabase(*from, copy, [] { return false; }));
  }
  HONE_RETURN_IF_ERROR(GiveIdentity(copy));
  HONE_ASSIGN_OR_RETURN(const BackupReport checked, CheckStoreFile(copy));
  HONE_RETURN_IF_ERROR(SyncFile(copy));

  RestoreReport report{.records = checked.records, .size_bytes = checked.size_bytes};
  if (std::filesystem::exists(store, error)) {
    report.kept_as =
        absl::StrCat(store, ".before-restore-",
                     absl::FormatTime("%Y%m%dT%H%M%E3S", absl::FromUnixMillis(now_unix_ms),
                                      absl::UTCTimeZone()));
    HONE_RETURN_IF_ERROR(Keep(store, report.kept_as));
  }
  if (rename(copy.c_str(), store.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("put the restored store in the place of ", store));
  }
  HONE_RETURN_IF_ERROR(SyncFolderOf(store));
  return report;
}

}  // namespace hone::store

#include "server/store/sqlite/backup.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/sqlite_store.h"

namespace hone::store {
namespace {

constexpr int kPagesPerStep = 1024;  // 4 MiB
constexpr absl::Duration kLongestPause = absl::Milliseconds(20);

absl::Status CopyPages(SqliteConnection& from, SqliteConnection& to,
                       const std::function<bool()>& cancelled) {
  sqlite3_backup* const backup =
      sqlite3_backup_init(to.database(), "main", from.database(), "main");
  if (backup == nullptr) return SqliteError(to.database(), to.path(), "begin a copy");
  int code = SQLITE_OK;
  while (code == SQLITE_OK) {
    if (cancelled()) {
      sqlite3_backup_finish(backup);
      return absl::CancelledError("the copy was cancelled");
    }
    const absl::Time start = absl::Now();
    code = sqlite3_backup_step(backup, kPagesPerStep);
    // Pauses for as long as the step took, so that others can use the disk.
    if (code == SQLITE_OK) absl::SleepFor(std::min(kLongestPause, absl::Now() - start));
  }
  const int finished = sqlite3_backup_finish(backup);
  if (code == SQLITE_DONE && finished == SQLITE_OK) return absl::OkStatus();
  return SqliteError(to.database(), to.path(), "copy");
}

absl::Status Sync(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  const int failed = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return failed == 0 ? absl::OkStatus() : ErrnoStatus(failed, absl::StrCat("sync ", path));
}

absl::Status NameIsTaken(const std::string& path) {
  return absl::AlreadyExistsError(
      absl::StrCat(path, " already exists, and a backup never replaces a file; give another name"));
}

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

absl::Status CopyDatabase(SqliteConnection& from, const std::string& to,
                          const std::function<bool()>& cancelled) {
  {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteConnection> copy,
                          SqliteConnection::OpenForWriting(to));
    // Without a transaction, each change of the source would restart the copy.
    HONE_RETURN_IF_ERROR(from.Execute("BEGIN"));
    absl::Status status = from.QueryInt64("SELECT COUNT(*) FROM sqlite_schema").status();
    if (status.ok()) status = CopyPages(from, *copy, cancelled);
    status.Update(from.Execute("ROLLBACK"));
    HONE_RETURN_IF_ERROR(status);
    // The copied header has the source's journal mode, with which the copy would need a second
    // file.
    HONE_ASSIGN_OR_RETURN(Statement mode, copy->Prepare("PRAGMA journal_mode = DELETE"));
    HONE_RETURN_IF_ERROR(mode.Run());
  }
  return SyncFile(to);
}

absl::StatusOr<BackupReport> CheckStoreFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::NotFoundError(absl::StrCat(path, " is not a file"));
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteConnection> connection,
                        SqliteConnection::OpenForReading(path));
  HONE_RETURN_IF_ERROR(CheckVersion(*connection, SqliteMigrations()));
  HONE_ASSIGN_OR_RETURN(const int64_t version, connection->QueryInt64("PRAGMA user_version"));
  if (version == 0) return absl::FailedPreconditionError(absl::StrCat(path, " is empty"));
  HONE_RETURN_IF_ERROR(CheckSchema(*connection, SqliteMigrations()));
  HONE_RETURN_IF_ERROR(QuickCheck(*connection));
  BackupReport report;
  HONE_ASSIGN_OR_RETURN(report.records, connection->QueryInt64("SELECT COUNT(*) FROM record"));
  report.size_bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error) return ErrnoStatus(error.value(), path);
  return report;
}

absl::Status SyncFile(const std::string& path) { return Sync(path, O_RDONLY); }

absl::Status SyncFolderOf(const std::string& path) {
  return Sync(std::filesystem::path(path).parent_path().string(), O_RDONLY | O_DIRECTORY);
}

absl::StatusOr<BackupReport> BackUp(const std::string& store, const std::string& path,
                                    const std::function<bool()>& cancelled) {
  const std::filesystem::path name(path);
  if (!name.is_absolute() || !name.has_filename()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is not the absolute path of a file on the server's machine"));
  }
  std::error_code error;
  if (!std::filesystem::is_directory(name.parent_path(), error)) {
    return absl::NotFoundError(
        absl::StrCat("the folder of ", path, " does not exist on the server's machine"));
  }
  if (std::filesystem::exists(std::filesystem::symlink_status(name, error))) {
    return NameIsTaken(path);
  }
  // Each attempt uses its own name, so that of two backups to one path one succeeds.
  std::string part = absl::StrCat(path, ".part-XXXXXX");
  const int fd = mkstemp(part.data());
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("make a file beside ", path));
  close(fd);
  const auto remove_part = absl::MakeCleanup([&] { std::filesystem::remove(part, error); });

  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteConnection> from,
                        SqliteConnection::OpenForReading(store));
  HONE_RETURN_IF_ERROR(CopyDatabase(*from, part, cancelled));
  HONE_ASSIGN_OR_RETURN(const BackupReport report, CheckStoreFile(part));
  // Unlike rename, link does not replace a file.
  if (link(part.c_str(), path.c_str()) != 0) {
    return errno == EEXIST ? NameIsTaken(path) : ErrnoStatus(errno, absl::StrCat("make ", path));
  }
  HONE_RETURN_IF_ERROR(SyncFolderOf(path));
  return report;
}

absl::Status BackUpBeforeMigration(SqliteConnection& store,
                                   const std::vector<const char*>& migrations) {
  HONE_ASSIGN_OR_RETURN(const int64_t version, store.QueryInt64("PRAGMA user_version"));
  if (version == 0 || version >= static_cast<int64_t>(migrations.size())) return absl::OkStatus();
  const std::string path = absl::StrCat(store.path(), ".before-schema-", migrations.size());
  std::error_code error;
  if (std::filesystem::exists(path, error)) return absl::OkStatus();
  const std::string part = absl::StrCat(path, ".part");
  std::filesystem::remove(part, error);  // left by an interrupted copy
  const auto remove_part = absl::MakeCleanup([&] { std::filesystem::remove(part, error); });
  HONE_RETURN_IF_ERROR(CopyDatabase(store, part, [] { return false; }));
  if (rename(part.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("make ", path));
  }
  return SyncFolderOf(path);
}

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

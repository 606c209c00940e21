#include "server/store/sqlite/copy.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "server/store/sqlite/integrity_check.h"
#include "server/store/sqlite/schema.h"
#include "server/store/sqlite/status.h"

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

}  // namespace hone::store

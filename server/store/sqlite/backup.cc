#include "server/store/sqlite/backup.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/copy.h"

namespace hone::store {
namespace {

absl::Status NameIsTaken(const std::string& path) {
  return absl::AlreadyExistsError(
      absl::StrCat(path, " already exists, and a backup never replaces a file; give another name"));
}

}  // namespace

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

}  // namespace hone::store

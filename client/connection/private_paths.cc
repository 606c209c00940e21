#include "client/connection/private_paths.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/config_file.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::client {
namespace {

// Adds advice to the error of an unusable data folder.
absl::Status WithAdvice(const absl::Status& status) {
  if (status.ok()) return status;
  return absl::FailedPreconditionError(absl::StrCat(
      status.message(),
      "; the data folder must be writable: free some space there, or set XDG_DATA_HOME to another "
      "folder"));
}

// The folder for the sockets, if the path of the data folder is too long for a socket.
absl::StatusOr<std::string> ShortSocketDir(const std::string& data_dir) {
  const std::string base = absl::StrCat("/tmp/hone-", geteuid());
  HONE_RETURN_IF_ERROR(MakeDirectories(base));
  struct stat info;
  if (lstat(base.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid() ||
      (info.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        base,
        " must be a folder that only you can access; remove it, or set XDG_DATA_HOME to a shorter "
        "path"));
  }
  const std::string dir = absl::StrCat(base, "/", DigestOf(data_dir).ToHex());
  HONE_RETURN_IF_ERROR(MakeDirectories(dir));
  return dir;
}

// "worker" for the CPU, "worker-opencl-1" for opencl:1.
std::string WorkerName(absl::string_view device) {
  return device == "cpu"
             ? "worker"
             : absl::StrCat("worker-", absl::StrReplaceAll(device, {{":", "-"}, {"/", "-"}}));
}

}  // namespace

std::string PrivatePaths::WorkerLog(absl::string_view device) const {
  return absl::StrCat(data_dir, "/run/", WorkerName(device), ".log");
}

std::string PrivatePaths::WorkerState(absl::string_view device) const {
  return absl::StrCat(data_dir, "/", WorkerName(device));
}

absl::StatusOr<std::string> DefaultDataDir() {
  std::string folder = UserFolder("XDG_DATA_HOME", ".local/share");
  if (!folder.empty()) return folder;
  return absl::FailedPreconditionError(
      "there is no folder for the data: set HOME or XDG_DATA_HOME to an absolute path");
}

absl::StatusOr<PrivatePaths> MakePrivatePaths(const std::string& data_dir) {
  HONE_RETURN_IF_ERROR(WithAdvice(MakeDirectories(data_dir)));
  // All spellings of a path must lead to the same server.
  std::error_code error;
  const std::filesystem::path canonical = std::filesystem::canonical(data_dir, error);
  if (error)
    return WithAdvice(
        ErrnoStatus(error.value(), absl::StrCat("cannot open the folder ", data_dir)));

  PrivatePaths paths;
  paths.data_dir = canonical.string();
  paths.store = absl::StrCat(paths.data_dir, "/hone.db");
  paths.lock = absl::StrCat(paths.data_dir, "/private.lock");
  const std::string run = absl::StrCat(paths.data_dir, "/run");
  HONE_RETURN_IF_ERROR(WithAdvice(MakeDirectories(run)));
  paths.ready_file = absl::StrCat(run, "/ready");
  paths.server_log = absl::StrCat(run, "/server.log");
  std::string sockets = run;
  if (sockets.size() + sizeof("/keeper.sock") > sizeof(sockaddr_un::sun_path)) {
    HONE_ASSIGN_OR_RETURN(sockets, ShortSocketDir(paths.data_dir));
  }
  paths.server_socket = absl::StrCat(sockets, "/server.sock");
  paths.keeper_socket = absl::StrCat(sockets, "/keeper.sock");
  return paths;
}

}  // namespace hone::client

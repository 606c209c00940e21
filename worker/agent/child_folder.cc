#include "worker/agent/child_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::agent {
namespace {

// Whether a file can be trusted to be only what it seems to be.
absl::Status CheckPlain(const struct stat& file, const std::string& path) {
  if (!S_ISREG(file.st_mode)) {
    return absl::PermissionDeniedError(absl::StrCat(path, " is not a regular file"));
  }
  if (file.st_nlink != 1) {
    return absl::PermissionDeniedError(absl::StrCat(path, " has another name, too"));
  }
  return absl::OkStatus();
}

absl::Status CannotTake(int error, const std::string& path) {
  if (error == ELOOP) {
    return absl::PermissionDeniedError(absl::StrCat(path, " is a symbolic link"));
  }
  return ErrnoStatus(error, absl::StrCat("open ", path));
}

}  // namespace

absl::StatusOr<std::unique_ptr<OutputFolder>> OutputFolder::Make(const std::string& parent) {
  HONE_RETURN_IF_ERROR(MakeDirectories(parent));
  std::string path = parent + "/XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return ErrnoStatus(errno, absl::StrCat("make a folder in ", parent));
  }
  return std::unique_ptr<OutputFolder>(new OutputFolder(std::move(path)));
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);  // does not follow links
}

void OutputFolder::Clear() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    std::error_code ignored;
    std::filesystem::remove_all(entry.path(), ignored);
  }
}

bool OutputFolder::HasMoreThan(int entries, const std::string& path) {
  std::error_code error;
  auto entry = std::filesystem::directory_iterator(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (--entries < 0) return true;
  }
  return false;
}

absl::Status OutputFolder::CheckOnly(const std::string& name) const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    if (entry.path().filename() == name) continue;
    return absl::PermissionDeniedError(absl::StrCat("it left ", entry.path().filename().string(),
                                                    " in its folder, besides ", name));
  }
  if (error) return ErrnoStatus(error.value(), absl::StrCat("read folder ", path_));
  return absl::OkStatus();
}

absl::StatusOr<std::string> OutputFolder::Take(const std::string& name, int64_t max_bytes) {
  HONE_RETURN_IF_ERROR(CheckOnly(name));
  const std::string path = absl::StrCat(path_, "/", name);
  // O_NONBLOCK: a FIFO has nobody at its other end.
  const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return CannotTake(errno, path);
  const absl::Cleanup close_file = [fd] { close(fd); };
  struct stat file;
  if (fstat(fd, &file) != 0) return ErrnoStatus(errno, absl::StrCat("look at ", path));
  HONE_RETURN_IF_ERROR(CheckPlain(file, path));
  const auto too_large = [&] {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " is larger than ", max_bytes, " bytes"));
  };
  if (file.st_size > max_bytes) return too_large();
  std::string bytes(static_cast<size_t>(file.st_size), '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t n = read(fd, bytes.data() + size, bytes.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, absl::StrCat("read ", path));
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  bytes.resize(size);
  if (unlink(path.c_str()) != 0) return ErrnoStatus(errno, absl::StrCat("remove ", path));
  return bytes;
}

absl::Status OutputFolder::MoveTo(const std::string& name, const std::string& path) {
  HONE_RETURN_IF_ERROR(CheckOnly(name));
  const std::string from = absl::StrCat(path_, "/", name);
  struct stat file;
  if (lstat(from.c_str(), &file) != 0) return CannotTake(errno, from);
  HONE_RETURN_IF_ERROR(CheckPlain(file, from));
  if (rename(from.c_str(), path.c_str()) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("move ", from, " to ", path));
}

absl::StatusOr<std::unique_ptr<InputFolder>> InputFolder::Make(const std::string& parent) {
  HONE_ASSIGN_OR_RETURN(auto folder, OutputFolder::Make(parent));
  return std::unique_ptr<InputFolder>(new InputFolder(std::move(folder)));
}

std::string InputFolder::PathOf(const std::string& file) const {
  if (file.empty()) return "";
  return absl::StrCat(path(), "/", std::filesystem::path(file).filename().string());
}

absl::Status InputFolder::Hold(const std::vector<std::string>& files) {
  const std::set<std::string> wanted(files.begin(), files.end());
  for (auto held = held_.begin(); held != held_.end();) {
    if (wanted.contains(*held)) {
      ++held;
      continue;
    }
    unlink(PathOf(*held).c_str());
    held = held_.erase(held);
  }
  for (const std::string& file : wanted) {
    if (held_.contains(file)) continue;
    const std::string name = PathOf(file);
    if (link(file.c_str(), name.c_str()) != 0) {
      // Some disks have no links, or this file has too many.
      const bool copies = errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK;
      std::error_code error(errno, std::generic_category());
      if (copies) std::filesystem::copy_file(file, name, error);
      if (error) return ErrnoStatus(error.value(), absl::StrCat("link ", file, " to ", name));
    }
    held_.insert(file);
  }
  return absl::OkStatus();
}

}  // namespace hone::agent

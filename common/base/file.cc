#include "common/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone {
namespace {

// Returns false and sets errno if not all could be written.
bool WriteAll(int fd, absl::string_view content) {
  while (!content.empty()) {
    const ssize_t n = write(fd, content.data(), content.size());
    if (n < 0) return false;
    content.remove_prefix(n);
  }
  return true;
}

absl::Status WriteInto(const std::string& path, absl::string_view content) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  const bool written = WriteAll(fd, content);
  const int error_number = errno;
  close(fd);
  return written ? absl::OkStatus() : ErrnoStatus(error_number, absl::StrCat("write ", path));
}

}  // namespace

absl::Status ErrnoStatus(int error_number, absl::string_view what) {
  const std::string message = absl::StrCat(what, ": ", std::strerror(error_number));
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return absl::InvalidArgumentError(message);
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
      return absl::ResourceExhaustedError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case EEXIST:
      return absl::AlreadyExistsError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  std::string content;
  char buffer[1 << 16];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof buffer)) > 0) content.append(buffer, n);
  const int error_number = errno;
  close(fd);
  if (n < 0) return ErrnoStatus(error_number, absl::StrCat("read ", path));
  return content;
}

FileToWrite FindFileToWrite(const std::string& path) {
  std::error_code error;
  FileToWrite file{.path = path};
  if (std::filesystem::is_symlink(path, error)) {
    std::filesystem::path target = std::filesystem::canonical(path, error);
    if (error) {  // the file that it names does not exist yet
      target =
          std::filesystem::path(path).parent_path() / std::filesystem::read_symlink(path, error);
    }
    if (!error && !std::filesystem::is_symlink(target, error)) file.path = target.string();
  }
  const std::filesystem::file_status status = std::filesystem::status(file.path, error);
  file.is_special = std::filesystem::is_other(status);
  return file;
}

std::optional<mode_t> ModeToKeep(const std::string& path) {
  struct stat existing;
  if (stat(path.c_str(), &existing) != 0 || existing.st_uid != geteuid()) return std::nullopt;
  return existing.st_mode & 0777;
}

absl::Status WriteFileAtomically(const std::string& name, absl::string_view content,
                                 Durability durability, std::optional<mode_t> mode) {
  const auto [path, is_special] = FindFileToWrite(name);
  if (is_special) return WriteInto(path, content);
  if (!mode.has_value()) mode = ModeToKeep(path).value_or(0644);
  std::string temporary = absl::StrCat(path, ".XXXXXX");
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("create ", path));
  const auto fail = [&](absl::string_view step) {
    const absl::Status status = ErrnoStatus(errno, absl::StrCat(step, " ", path));
    close(fd);
    unlink(temporary.c_str());
    return status;
  };
  if (!WriteAll(fd, content)) return fail("write");
  if (fchmod(fd, *mode) != 0) return fail("set the mode of");
  if (durability == Durability::kMachine && fsync(fd) != 0) return fail("sync");
  if (rename(temporary.c_str(), path.c_str()) != 0) return fail("rename to");
  close(fd);
  return absl::OkStatus();
}

absl::Status MakeDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::path made;
  for (const auto& part : std::filesystem::path(path)) {
    made /= part;
    if (std::filesystem::is_directory(made, error)) continue;
    if (mkdir(made.c_str(), 0700) != 0 && errno != EEXIST) {
      // The folder above exists. Special file systems such as /proc still give ENOENT.
      return ErrnoStatus(errno == ENOENT ? EACCES : errno,
                         absl::StrCat("create folder ", made.string()));
    }
  }
  return absl::OkStatus();
}

MemoryFile::MemoryFile() : fd_(memfd_create("hone", MFD_CLOEXEC)) {}

MemoryFile::~MemoryFile() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<std::unique_ptr<MemoryFile>> MemoryFile::Create(absl::string_view content) {
  auto file = std::make_unique<MemoryFile>();
  if (file->fd_ < 0) return ErrnoStatus(errno, "create a file in memory");
  HONE_RETURN_IF_ERROR(file->Write(content));
  return file;
}

std::string MemoryFile::path() const { return absl::StrCat("/proc/self/fd/", fd_); }

absl::Status MemoryFile::Write(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t size = write(fd_, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return ErrnoStatus(errno, "write a file in memory");
    text.remove_prefix(static_cast<size_t>(size));
  }
  lseek(fd_, 0, SEEK_SET);
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryFile::Read() const { return ReadFile(path()); }

}  // namespace hone

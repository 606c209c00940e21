#include "common/base/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone {

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

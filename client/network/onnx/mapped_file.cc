#include "client/network/onnx/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"

namespace hone::onnx {

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  // Without O_NONBLOCK, a pipe would block.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  const absl::Cleanup close = [file] { ::close(file); };
  struct stat info;
  if (::fstat(file, &info) != 0) return ErrnoStatus(errno, absl::StrCat("read ", path));
  if (S_ISDIR(info.st_mode)) return ErrnoStatus(EISDIR, absl::StrCat("read ", path));
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("read ", path, ": it is not a regular file"));
  }
  const size_t size = static_cast<size_t>(info.st_size);
  void* data = nullptr;
  if (size > 0) {
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("map ", path));
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(data, size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace hone::onnx

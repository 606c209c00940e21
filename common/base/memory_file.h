#ifndef HONE_COMMON_BASE_MEMORY_FILE_H_
#define HONE_COMMON_BASE_MEMORY_FILE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone {

// An unnamed file in memory. It serves as the standard input or output of a child process, since a
// pipe would block its writer until someone reads, and as the input of libraries that open files by
// name.
class MemoryFile {
 public:
  MemoryFile();
  // A file with this content. Errors as for ErrnoStatus.
  static absl::StatusOr<std::unique_ptr<MemoryFile>> Create(absl::string_view content);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // -1 if the file could not be created; errno then says why.
  int fd() const { return fd_; }
  // Its name in this process while it is open, under /proc.
  std::string path() const;

  // Appends the text and goes back to the beginning of the file. Internal: the system call fails.
  absl::Status Write(absl::string_view text);
  absl::StatusOr<std::string> Read() const;

 private:
  const int fd_;
};

}  // namespace hone

#endif  // HONE_COMMON_BASE_MEMORY_FILE_H_

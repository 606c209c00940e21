#ifndef HONE_COMMON_BASE_MEMORY_FILE_H_
#define HONE_COMMON_BASE_MEMORY_FILE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone {

// An unnamed file in memory: the standard input or output of a child process, which unlike a pipe
// does not block the writer when nobody reads, or the input of a library that opens files by name.
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

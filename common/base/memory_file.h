#ifndef HONE_COMMON_BASE_MEMORY_FILE_H_
#define HONE_COMMON_BASE_MEMORY_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone {

// An unnamed file in memory, for the standard streams of a child process. Unlike a pipe, it does
// not block the writer when nobody reads.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // -1 if the file could not be created; errno then says why.
  int fd() const { return fd_; }

  // Appends the text and goes back to the beginning of the file. Internal: the system call fails.
  absl::Status Write(absl::string_view text);
  absl::StatusOr<std::string> Read() const;

 private:
  const int fd_;
};

}  // namespace hone

#endif  // HONE_COMMON_BASE_MEMORY_FILE_H_

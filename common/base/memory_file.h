#ifndef HONE_COMMON_BASE_MEMORY_FILE_H_
#define HONE_COMMON_BASE_MEMORY_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone {

// A file in memory without a name, for the standard streams of a child process. Unlike a pipe, it
// holds a text of any length without a reader.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // -1 with errno if the file could not be made.
  int fd() const { return fd_; }

  // Appends the text and goes back to the beginning of the file. Internal: the system refuses it.
  absl::Status Write(absl::string_view text);
  absl::StatusOr<std::string> Read() const;

 private:
  const int fd_;
};

}  // namespace hone

#endif  // HONE_COMMON_BASE_MEMORY_FILE_H_

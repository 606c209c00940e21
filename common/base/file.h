#ifndef HONE_COMMON_BASE_FILE_H_
#define HONE_COMMON_BASE_FILE_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone {

// Returns the content of a file. NotFound: no such file. InvalidArgument: the path is malformed or
// names a folder. PermissionDenied, Internal: the file cannot be read. The message names the
// path.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Whether a written file survives a power failure (kMachine, which needs an fsync of milliseconds)
// or only the end of the process (kProcess, for caches that verify their content when they read
// it).
enum class Durability { kMachine, kProcess };

// The file that a path to write names.
struct FileToWrite {
  std::string path;  // after symbolic links
  // A device, FIFO or socket, which must be written into: a rename would replace it by a file.
  bool is_special = false;
};
FileToWrite FindFileToWrite(const std::string& path);

// Returns the mode of the file, which its replacement should keep. Returns nullopt if the file does
// not exist or belongs to another user.
std::optional<mode_t> ModeToKeep(const std::string& path);

// Replaces the file in one step: writes a temporary file beside it, syncs and renames it. Follows
// symbolic links, and writes into devices and FIFOs.
// ResourceExhausted: the disk is full. PermissionDenied: the folder is read-only. Leaves nothing
// behind on error. `mode`: 0600 for a secret, which no other user can read at any time; nullopt
// keeps the mode of an existing file of the same user, and is 0644 for any other.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content,
                                 Durability durability = Durability::kMachine,
                                 std::optional<mode_t> mode = std::nullopt);

// Like mkdir -p; new folders get mode 0700.
absl::Status MakeDirectories(const std::string& path);

// Converts errno of a system call. `what` describes the attempt and includes the path.
absl::Status ErrnoStatus(int error_number, absl::string_view what);

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

#endif  // HONE_COMMON_BASE_FILE_H_

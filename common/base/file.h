#ifndef HONE_COMMON_BASE_FILE_H_
#define HONE_COMMON_BASE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone {

// The whole content. NotFound: no such file. PermissionDenied / Internal: it cannot be read; the
// message names the path.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// What a written file must survive: the machine's power loss (fsync, milliseconds), or only the
// process. The second is for caches whose content is checked when it is read.
enum class Durability { kMachine, kProcess };

// Replaces the file in one step: a temporary file beside it, fsync, rename. ResourceExhausted: the
// disk is full. PermissionDenied: read-only. Nothing is left behind on error.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content,
                                 Durability durability = Durability::kMachine);

// Like mkdir -p, mode 0700 for what it makes.
absl::Status MakeDirectories(const std::string& path);

// The status for errno of a system call: `what` says what was tried, with the path.
absl::Status ErrnoStatus(int error_number, absl::string_view what);

}  // namespace hone

#endif  // HONE_COMMON_BASE_FILE_H_

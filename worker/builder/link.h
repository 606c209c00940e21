#ifndef HONE_WORKER_BUILDER_LINK_H_
#define HONE_WORKER_BUILDER_LINK_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::builder {

struct LinkOptions {
  std::string triple = "x86_64-pc-linux-gnu";  // that the object was compiled for
  std::string scratch_dir = "/tmp";  // where the linker writes; a memory file system is best
};

// Links one object file to a shared object with LLD, in this process: nothing but the symbols
// hone_kernel_* is visible, what they do not reach is dropped, and every other symbol must come
// from the object or from KnownLibraries(), which become dependencies only when used. Equal objects
// give equal bytes. One link at a time per process (LLD keeps global state); calls from several
// threads wait for each other.
//
// InvalidArgument: the linker refuses the object; the message is the linker's (an undefined symbol,
// no object file, another machine's). NotFound / PermissionDenied / ResourceExhausted: the scratch
// folder cannot be written. Internal: the linker crashed; the process must not link again.
absl::StatusOr<std::string> LinkSharedObject(absl::string_view object, const LinkOptions& options);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_LINK_H_

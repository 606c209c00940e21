#ifndef HONE_WORKER_BUILDER_LINK_H_
#define HONE_WORKER_BUILDER_LINK_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::builder {

struct LinkOptions {
  std::string triple = "x86_64-pc-linux-gnu";  // the target that the object was compiled for
  std::string scratch_dir = "/tmp";  // where the linker writes; preferably a memory file system
};

// Links one object file to a shared object with LLD, in this process. Only the symbols
// hone_kernel_* are visible, and unreachable code is dropped. Every other symbol must come from the
// object or from the known libraries (OpenMP, libc's memory functions and getauxval, libm), which
// become dependencies only if used. Equal objects give equal bytes. LLD keeps global state, so
// concurrent calls wait for each other.
//
// InvalidArgument: the linker refuses the object (an undefined symbol, not an object file, wrong
// machine); the message is the linker's. NotFound / PermissionDenied / ResourceExhausted: the
// scratch folder is not writable. Internal: the linker crashed; the process must not link again.
absl::StatusOr<std::string> LinkSharedObject(absl::string_view object, const LinkOptions& options);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_LINK_H_

#ifndef HONE_WORKER_BUILDER_LINK_H_
#define HONE_WORKER_BUILDER_LINK_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/target/kernel_abi.h"

namespace hone::builder {

struct LinkOptions {
  std::string triple = "x86_64-pc-linux-gnu";  // the target that the object was compiled for
  std::string scratch_dir = "/tmp";  // where the linker writes; preferably a memory file system
  // Prefix of the visible functions, a C identifier.
  std::string visible = target::kFunctionPrefix;
};

// Links object files to a shared object with LLD, in this process. Only the symbols with the prefix
// are visible, and unreachable code is dropped. Every other symbol must come from the objects or
// from the known libraries (the functions of libc and libm that kernels and the runtime of
// networks use), which become dependencies only if used. Equal objects give equal bytes. LLD keeps
// global state, so concurrent calls wait for each other.
//
// InvalidArgument: the linker refuses an object (an undefined symbol, a symbol that is defined
// twice, not an object file, wrong machine); the message is the linker's. NotFound /
// PermissionDenied: the scratch folder is not writable. ResourceExhausted: its disk is full, or
// there is no memory. Internal: the linker crashed; the process must not link again.
absl::StatusOr<std::string> LinkSharedObject(absl::Span<const absl::string_view> objects,
                                             const LinkOptions& options);
absl::StatusOr<std::string> LinkSharedObject(absl::string_view object, const LinkOptions& options);

// The triple of the machine that an object file is for: x86-64, aarch64 or ARMv7 with Linux.
// InvalidArgument: it is for another machine, or is not an ELF file.
absl::StatusOr<std::string> TripleOf(absl::string_view object);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_LINK_H_

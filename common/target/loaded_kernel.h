#ifndef HONE_COMMON_TARGET_LOADED_KERNEL_H_
#define HONE_COMMON_TARGET_LOADED_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/file.h"
#include "common/target/kernel_library.h"
#include "common/target/target.h"

namespace hone::target {

// A kernel loaded into this process from the bytes of its artifact. The shared object is written to
// a memory file and loaded by its name under /proc. See KernelLibrary.
class LoadedKernel {
 public:
  // InvalidArgument: a different ABI version, or a missing symbol. FailedPrecondition: the loader
  // rejects the object. Internal: the memory file cannot be created.
  static absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadSharedObject(absl::string_view bytes);

  const KernelLibrary& library() const { return library_; }
  // KernelLibrary::Call. ResourceExhausted: out of memory. Other errors as for
  // KernelStatusToStatus.
  absl::Status Call(void* const* buffers) const;

 private:
  LoadedKernel() = default;
  // Open while the code is loaded: the loader identifies objects by this name.
  std::unique_ptr<MemoryFile> file_;
  KernelLibrary library_;
};

// Converts a kernel's return code. FailedPrecondition: the CPU lacks a feature that the kernel
// uses. Internal: any other code but kKernelOk.
absl::Status KernelStatusToStatus(int32_t code);

// Checks that code for `target` may be loaded on `host`. FailedPrecondition: the host lacks
// something; the message names it.
absl::Status CheckRunsOn(const Target& target, const Target& host);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_LOADED_KERNEL_H_

#ifndef HONE_COMMON_TARGET_LOADED_KERNEL_H_
#define HONE_COMMON_TARGET_LOADED_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/kernel_abi.h"
#include "common/target/target.h"

namespace hone::target {

// A kernel's code in this process, from the very bytes that its artifact holds: the shared object
// goes into a memory file, which is loaded by its name under /proc. Nothing of a kernel's code has
// run yet when Load returns, except its sizes. The OpenMP runtime that it calls is loaded with the
// first one and stays. Calls with different buffers may run concurrently.
class LoadedKernel {
 public:
  // InvalidArgument: another ABI version, or a symbol is missing. FailedPrecondition: the loader
  // refuses the object, or there is no OpenMP runtime. Internal: no memory file.
  static absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadSharedObject(absl::string_view bytes);
  ~LoadedKernel();
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  int64_t workspace_bytes() const { return workspace_bytes_; }
  int64_t packed_bytes() const { return packed_bytes_; }
  int64_t range_extent() const { return range_extent_; }

  // The calls of kernel_abi.h.
  int32_t Prepack(void* const* buffers, void* packed) const { return prepack_(buffers, packed); }
  int32_t Run(void* const* buffers, const void* packed, void* workspace) const {
    return run_(buffers, packed, workspace);
  }
  int32_t Range(void* const* buffers, const void* packed, void* workspace, int64_t begin,
                int64_t end) const {
    return range_(buffers, packed, workspace, begin, end);
  }

 private:
  LoadedKernel() = default;
  int fd_ = -1;  // open as long as the code is loaded: the loader knows objects by this name
  void* handle_ = nullptr;
  int64_t workspace_bytes_ = 0;
  int64_t packed_bytes_ = 0;
  int64_t range_extent_ = 0;
  PrepackFunction prepack_ = nullptr;
  RunFunction run_ = nullptr;
  RangeFunction range_ = nullptr;
};

// What a kernel's return code means. FailedPrecondition: the CPU lacks a feature that it uses.
// Internal: anything else that is not kKernelOk.
absl::Status KernelStatusToStatus(int32_t code);

// Whether code for `target` may be loaded on `host`. FailedPrecondition: names what the host lacks.
absl::Status CheckRunsOn(const Target& target, const Target& host);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_LOADED_KERNEL_H_

#ifndef HONE_WORKER_RUNNER_KERNEL_H_
#define HONE_WORKER_RUNNER_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/target/kernel_abi.h"

namespace hone::runner {

// A kernel's code in this process, from the very bytes of its artifact: the shared object goes into
// a memory file, which is loaded by its name under /proc. Nothing of a kernel's code has run yet
// when Load returns, except its sizes.
class Kernel {
 public:
  // Loads `<folder>/<digest>`. NotFound / Internal: the file cannot be read. DataLoss: its bytes do
  // not have the digest that names it. InvalidArgument: not an artifact, another ABI version, or a
  // symbol is missing. FailedPrecondition: the loader refuses the object.
  static absl::StatusOr<std::unique_ptr<Kernel>> Load(const std::string& artifact_path);
  // The same from a plain shared object.
  static absl::StatusOr<std::unique_ptr<Kernel>> LoadSharedObject(absl::string_view bytes);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

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
  Kernel() = default;
  int fd_ = -1;  // open as long as the code is loaded: the loader knows objects by this name
  void* handle_ = nullptr;
  int64_t workspace_bytes_ = 0;
  int64_t packed_bytes_ = 0;
  int64_t range_extent_ = 0;
  target::PrepackFunction prepack_ = nullptr;
  target::RunFunction run_ = nullptr;
  target::RangeFunction range_ = nullptr;
};

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_KERNEL_H_

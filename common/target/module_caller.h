#ifndef HONE_COMMON_TARGET_MODULE_CALLER_H_
#define HONE_COMMON_TARGET_MODULE_CALLER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/target/gpu_module.h"

namespace hone::target {

// Calls modules on one GPU of this machine. Creating one may take a second, because drivers load
// their compilers. Single-threaded. See opencl::MakeModuleCaller and cuda::MakeModuleCaller.
class ModuleCaller {
 public:
  virtual ~ModuleCaller() = default;

  // Loads a module and runs it once: packs the constants, then runs the other launches in order.
  // `inputs` holds the elements of the inputs; the result holds those of the outputs, whose sizes
  // are `output_bytes`. An element that no kernel writes has all bits set.
  //
  // InvalidArgument: the numbers of buffers differ from those of the module, or a launch is
  // refused. FailedPrecondition: the driver does not load the code; the message says why.
  // ResourceExhausted: out of memory. Unavailable, Aborted: the device or the kernel fails.
  virtual absl::StatusOr<std::vector<std::string>> Call(const GpuModule& module,
                                                        absl::Span<const absl::string_view> inputs,
                                                        absl::Span<const int64_t> output_bytes) = 0;

 protected:
  // Errors as described above.
  static absl::Status CheckNumbers(const GpuModule& module, size_t inputs, size_t outputs);
};

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_MODULE_CALLER_H_

#ifndef HONE_COMMON_TARGET_OPENCL_CALL_MODULE_H_
#define HONE_COMMON_TARGET_OPENCL_CALL_MODULE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/target/gpu_module.h"
#include "common/target/target.h"

namespace hone::opencl {

// Calls modules on one device of this machine. Creating one may take a second, because drivers load
// their compilers. Single-threaded.
class ModuleCaller {
 public:
  // Uses the device of this machine that has a target. NotFound: there is no OpenCL device.
  // FailedPrecondition: none has the target. Unavailable: the device fails.
  static absl::StatusOr<std::unique_ptr<ModuleCaller>> Create(const target::Target& target);
  virtual ~ModuleCaller() = default;

  // Builds a module and runs it once: packs the constants, then runs the other launches in order.
  // `inputs` holds the elements of the inputs; the result holds those of the outputs, whose sizes
  // are `output_bytes`. An element that no kernel writes has all bits set.
  //
  // InvalidArgument: the numbers of buffers differ from those of the module, or a launch is
  // refused. FailedPrecondition: the driver does not build the source; the message has its log.
  // ResourceExhausted: out of memory. Unavailable: the device fails.
  virtual absl::StatusOr<std::vector<std::string>> Call(const target::GpuModule& module,
                                                        absl::Span<const absl::string_view> inputs,
                                                        absl::Span<const int64_t> output_bytes) = 0;
};

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_CALL_MODULE_H_

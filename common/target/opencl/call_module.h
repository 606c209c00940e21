#ifndef HONE_COMMON_TARGET_OPENCL_CALL_MODULE_H_
#define HONE_COMMON_TARGET_OPENCL_CALL_MODULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/target/gpu_module.h"
#include "common/target/target.h"

namespace hone::opencl {

// Builds a module for the device of this machine that has a target, and calls it once: packs the
// constants, then runs the other launches in order. `inputs` holds the elements of the inputs; the
// result holds those of the outputs, whose sizes are `output_bytes`. An element that no kernel
// writes has all bits set.
//
// InvalidArgument: the numbers of buffers differ from those of the module, or a launch is refused.
// NotFound: there is no OpenCL device. FailedPrecondition: none has the target, or the driver does
// not build the source; the message has its log. ResourceExhausted: out of memory. Unavailable: the
// device fails.
absl::StatusOr<std::vector<std::string>> CallModule(const target::Target& target,
                                                    const target::GpuModule& module,
                                                    absl::Span<const absl::string_view> inputs,
                                                    absl::Span<const int64_t> output_bytes);

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_CALL_MODULE_H_

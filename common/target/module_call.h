#ifndef HONE_COMMON_TARGET_MODULE_CALL_H_
#define HONE_COMMON_TARGET_MODULE_CALL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/target/gpu_context.h"
#include "common/target/gpu_module.h"

namespace hone::target {

// Loads a module and runs it once: packs the constants, then runs the other launches in order.
// `inputs` holds the elements of the inputs; the result holds those of the outputs, whose sizes are
// `output_bytes`. An element that no kernel writes has all bits set.
//
// InvalidArgument: the numbers of buffers differ from those of the module, or a launch is refused.
// FailedPrecondition: the driver does not load the code; the message says why. ResourceExhausted:
// out of memory. Unavailable, Aborted: the device or the kernel fails.
absl::StatusOr<std::vector<std::string>> CallModule(GpuContext& context, const GpuModule& module,
                                                    absl::Span<const absl::string_view> inputs,
                                                    absl::Span<const int64_t> output_bytes);

// The same with the loaded code of several modules: the launches of `module` are those of `program`
// from number `first_launch` on.
absl::StatusOr<std::vector<std::string>> CallLoaded(GpuContext& context, GpuProgram& program,
                                                    size_t first_launch, const GpuModule& module,
                                                    absl::Span<const absl::string_view> inputs,
                                                    absl::Span<const int64_t> output_bytes);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_MODULE_CALL_H_

#ifndef HONE_COMMON_TARGET_OPEN_GPU_H_
#define HONE_COMMON_TARGET_OPEN_GPU_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/gpu_context.h"
#include "common/target/target.h"

namespace hone::target {

// Opens a GPU of this machine: "cuda", "cuda:N", "opencl" or "opencl:N". May take a second, because
// drivers load their compilers, and starts threads. InvalidArgument: not such a name. NotFound: no
// driver or no such device. FailedPrecondition, ResourceExhausted, Unavailable: the driver cannot
// use it.
absl::StatusOr<std::unique_ptr<GpuContext>> OpenGpu(absl::string_view name);

// Opens the GPU with this name, which must have the target; "": the first one that has it. Errors
// as above, and FailedPrecondition: it does not have the target, or none has it.
absl::StatusOr<std::unique_ptr<GpuContext>> OpenGpuFor(const Target& target,
                                                       absl::string_view name = "");

// The number of that GPU: N of "cuda:N" or "opencl:N". Does not open it. Errors as above.
absl::StatusOr<int> GpuNumberFor(const Target& target, absl::string_view name = "");

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_OPEN_GPU_H_

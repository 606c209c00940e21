#ifndef HONE_COMMON_TARGET_GPU_LAUNCH_H_
#define HONE_COMMON_TARGET_GPU_LAUNCH_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/target/gpu_context.h"
#include "common/target/gpu_module.h"

namespace hone::target {

// Returns the name of a launch's kernel in printable ASCII, at most 128 characters.
std::string PrintableName(const GpuLaunch& launch);

// Returns InvalidArgument with the message "kernel 'NAME' WHY".
absl::Status RefuseLaunch(const GpuLaunch& launch, absl::string_view why);

// What the error of a device says that failed while it ran launches from `first` to `last`, which
// are names of kernels.
std::string DeviceFailedText(absl::string_view first, absl::string_view last);

// Checks a launch against the limits of the device. InvalidArgument: it exceeds one.
absl::Status CheckLaunch(const GpuLaunch& launch, const GpuContext& context);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_GPU_LAUNCH_H_

#ifndef HONE_WORKER_RUNNER_GPU_LAUNCH_H_
#define HONE_WORKER_RUNNER_GPU_LAUNCH_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/target/gpu_module.h"

namespace hone::runner {

// Returns the name of a launch's kernel in printable ASCII, at most 128 characters.
std::string PrintableName(const target::GpuLaunch& launch);

// Returns InvalidArgument with the message "kernel 'NAME' WHY".
absl::Status RefuseLaunch(const target::GpuLaunch& launch, absl::string_view why);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_GPU_LAUNCH_H_

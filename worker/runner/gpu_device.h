#ifndef HONE_WORKER_RUNNER_GPU_DEVICE_H_
#define HONE_WORKER_RUNNER_GPU_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/gpu_context.h"
#include "worker/runner/device.h"
#include "worker/runner/peak.h"

namespace hone::runner {

// Opens a GPU of this machine: "cuda", "cuda:N", "opencl" or "opencl:N". Loading a driver starts
// threads. InvalidArgument: not such a name. NotFound: no driver or no such device.
// FailedPrecondition, Unavailable: the driver cannot use it.
absl::StatusOr<std::unique_ptr<Device>> MakeGpuDevice(absl::string_view name);
// The same for an open context.
std::unique_ptr<Device> MakeGpuDevice(std::unique_ptr<target::GpuContext> context);

// Measures the peaks of a GPU, see MeasureGpuPeak(target::GpuContext&). Errors as for
// MakeGpuDevice.
absl::StatusOr<Peak> MeasureGpuPeak(absl::string_view name);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_GPU_DEVICE_H_

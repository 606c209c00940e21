#ifndef HONE_WORKER_RUNNER_OPENCL_DEVICE_H_
#define HONE_WORKER_RUNNER_OPENCL_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/runner/device.h"
#include "worker/runner/peak.h"

namespace hone::runner {

// The OpenCL device "opencl" or "opencl:N" of this machine (see opencl::FindDevice). Loading a
// driver starts threads. InvalidArgument: not such a name. NotFound: no driver or no such device.
// Unavailable: the driver cannot use it.
absl::StatusOr<std::unique_ptr<Device>> MakeOpenClDevice(absl::string_view name);

// Measures the peaks of the device, see MeasureOpenClPeak. Errors as for MakeOpenClDevice.
absl::StatusOr<Peak> MeasureOpenClPeak(absl::string_view name);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_OPENCL_DEVICE_H_

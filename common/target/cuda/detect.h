#ifndef HONE_COMMON_TARGET_CUDA_DETECT_H_
#define HONE_COMMON_TARGET_CUDA_DETECT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/cuda/api.h"
#include "common/target/target.h"

namespace hone::cuda {

// A GPU of this machine, with texts in printable ASCII.
struct DeviceFacts {
  DeviceNumber device = 0;
  std::string name;     // "NVIDIA A100-SXM4-40GB"
  std::string driver;   // the newest CUDA that the driver supports: "12.8"
  std::string uuid;     // "GPU-8f6d…"; "" if the driver does not report it
  std::string pci;      // "0000:3b:00.0", the form that NVML and nvidia-smi use
  std::string problem;  // why the device cannot or should not be used; "": it can
  target::Target target;
};

// Lists the devices in the driver's order, which CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER change.
// The position is the N of "cuda:N". Devices that cannot be used are listed with their problem.
// NotFound: this machine has no such device, or its driver is too old; the message says why.
absl::StatusOr<std::vector<DeviceFacts>> ListDevices(const Api& api);

// Returns device N for "cuda:N", and device 0 for "cuda". InvalidArgument: another name. NotFound:
// as for ListDevices, or N is too large; then the message lists the devices. FailedPrecondition:
// the device cannot be used; the message says why.
absl::StatusOr<DeviceFacts> FindDevice(const Api& api, absl::string_view name);

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_DETECT_H_

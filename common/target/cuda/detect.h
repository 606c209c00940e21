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

// An attribute of a device, or `otherwise` if the driver does not know it.
int AttributeOr(const Api& api, DeviceNumber device, DeviceAttribute attribute, int otherwise);

// Asks a driver for the properties of one device. A device of a known model with the model's number
// of multiprocessors has the target of the preset, so that records are shared. The target of any
// other, such as a MIG slice, is made from the attributes that the driver reports, clamped to the
// ranges that targets allow. FailedPrecondition: the architecture is not supported. Unavailable:
// the driver does not answer.
absl::StatusOr<target::Target> DescribeDevice(const Api& api, DeviceNumber device,
                                              absl::string_view name);

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

// Returns the target of this machine's CUDA device "cuda" or "cuda:N". Loads the driver. Errors are
// those of FindDevice and LoadedApi.
absl::StatusOr<target::Target> TargetOf(absl::string_view name);

// Makes TargetByName accept "cuda" and "cuda:N". Called at the start of a program.
void AddTargets();

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_DETECT_H_

#ifndef HONE_COMMON_TARGET_OPENCL_DETECT_H_
#define HONE_COMMON_TARGET_OPENCL_DETECT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/opencl/api.h"
#include "common/target/opencl/targets.h"
#include "common/target/target.h"

namespace hone::opencl {

// Asks a driver for the properties of one device. Properties that drivers do not report (registers,
// threads of a compute unit) come from the presets of known GPUs and are otherwise unknown. Values
// are clamped to the ranges that targets allow. Unavailable: the driver does not
// answer.
absl::StatusOr<target::Target> DescribeDevice(const Api& api, cl_device_id device);

// A device of this machine, with texts in printable ASCII.
struct DeviceFacts {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  cl_device_type type = 0;
  std::string platform_name;  // "Portable Computing Language"
  std::string name;
  std::string vendor;
  std::string driver_version;
  target::Target target;
};

// Lists the usable devices of all drivers: GPUs first, then accelerators, then CPUs; those of a
// kind by the names of their platform and device. The position in this list is the N of
// "opencl:N". NotFound: there are none; the message says why, and what to install. Drivers and
// devices that fail are left out.
absl::StatusOr<std::vector<DeviceFacts>> ListDevices(const Api& api);

// Returns device N of the list for "opencl:N", and device 0 for "opencl". InvalidArgument: another
// name. NotFound: as for ListDevices, or N is too large; then the message lists the devices.
absl::StatusOr<DeviceFacts> FindDevice(const Api& api, absl::string_view name);

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_DETECT_H_

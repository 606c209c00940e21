#ifndef HONE_COMMON_TARGET_OPENCL_DEVICE_INFO_H_
#define HONE_COMMON_TARGET_OPENCL_DEVICE_INFO_H_

#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "common/target/opencl/api.h"

namespace hone::opencl {

// A text property, as the driver gives it. Unavailable: the call fails, or the text is longer than
// a megabyte.
absl::StatusOr<std::string> PlatformText(const Api& api, cl_platform_id platform,
                                         cl_platform_info property);
absl::StatusOr<std::string> DeviceText(const Api& api, cl_device_id device,
                                       cl_device_info property);

// A property of a fixed size, or `otherwise` if the driver does not know it.
template <typename T>
T DeviceValue(const Api& api, cl_device_id device, cl_device_info property, T otherwise) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value = otherwise;
  size_t bytes = 0;
  const cl_int code = api.GetDeviceInfo(device, property, sizeof(value), &value, &bytes);
  return code == CL_SUCCESS && bytes == sizeof(value) ? value : otherwise;
}

// The address on the PCI bus, such as "0000:3b:00.0"; "" if the driver does not report it.
std::string PciAddress(const Api& api, cl_device_id device);

// The largest number of threads of a block in each of the dimensions x, y and z.
std::vector<size_t> MaxBlock(const Api& api, cl_device_id device);

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_DEVICE_INFO_H_

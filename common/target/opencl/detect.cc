#include "common/target/opencl/detect.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/target/device_name.h"
#include "common/target/opencl/describe.h"
#include "common/target/opencl/device_info.h"
#include "common/target/opencl/error.h"

namespace hone::opencl {
namespace {

using target::Printable;

constexpr char kKind[] = "opencl";
constexpr cl_uint kMaxDevices = 256;  // per driver; also the limit on drivers
constexpr size_t kMaxName = 128;
constexpr cl_int kPlatformNotFound = -1001;  // cl_khr_icd: there is no driver

absl::StatusOr<std::vector<cl_platform_id>> Platforms(const Api& api) {
  cl_uint count = 0;
  cl_platform_id ids[kMaxDevices];
  const cl_int code = api.GetPlatformIDs(kMaxDevices, ids, &count);
  if (code == kPlatformNotFound) return std::vector<cl_platform_id>{};
  HONE_RETURN_IF_ERROR(ToStatus(code, "list the OpenCL drivers"));
  return std::vector<cl_platform_id>(ids, ids + std::min(count, kMaxDevices));
}

absl::StatusOr<std::vector<cl_device_id>> DevicesOf(const Api& api, cl_platform_id platform) {
  cl_uint count = 0;
  cl_device_id ids[kMaxDevices];
  const cl_int code = api.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, kMaxDevices, ids, &count);
  if (code == CL_DEVICE_NOT_FOUND) return std::vector<cl_device_id>{};
  HONE_RETURN_IF_ERROR(ToStatus(code, "list the devices"));
  return std::vector<cl_device_id>(ids, ids + std::min(count, kMaxDevices));
}

absl::StatusOr<DeviceFacts> Describe(const Api& api, cl_platform_id platform,
                                     const std::string& platform_name, cl_device_id device) {
  DeviceFacts facts{.platform = platform, .device = device, .platform_name = platform_name};
  facts.type = DeviceValue<cl_device_type>(api, device, CL_DEVICE_TYPE, 0);
  for (const auto& [property, field] :
       {std::pair{CL_DEVICE_NAME, &facts.name}, std::pair{CL_DEVICE_VENDOR, &facts.vendor},
        std::pair{CL_DRIVER_VERSION, &facts.driver_version}}) {
    HONE_ASSIGN_OR_RETURN(const std::string text, DeviceText(api, device, property));
    *field = Printable(text, kMaxName);
  }
  if (DeviceValue<cl_bool>(api, device, CL_DEVICE_AVAILABLE, CL_TRUE) == CL_FALSE) {
    return absl::UnavailableError("it is not available");
  }
  if (DeviceValue<cl_bool>(api, device, CL_DEVICE_COMPILER_AVAILABLE, CL_TRUE) == CL_FALSE) {
    return absl::UnavailableError("its driver has no compiler");
  }
  HONE_ASSIGN_OR_RETURN(facts.target, DescribeDevice(api, device));
  return facts;
}

int Rank(cl_device_type type) {
  if ((type & CL_DEVICE_TYPE_GPU) != 0) return 0;
  return (type & CL_DEVICE_TYPE_CPU) != 0 ? 2 : 1;
}

}  // namespace

absl::StatusOr<std::vector<DeviceFacts>> ListDevices(const Api& api) {
  std::vector<DeviceFacts> devices;
  std::vector<std::string> problems;
  HONE_ASSIGN_OR_RETURN(const std::vector<cl_platform_id> platforms, Platforms(api));
  for (const cl_platform_id platform : platforms) {
    const std::string name =
        Printable(PlatformText(api, platform, CL_PLATFORM_NAME).value_or("driver"), kMaxName);
    const auto ids = DevicesOf(api, platform);
    if (!ids.ok()) problems.push_back(absl::StrCat(name, ": ", ids.status().message()));
    for (const cl_device_id id : ids.value_or(std::vector<cl_device_id>{})) {
      absl::StatusOr<DeviceFacts> facts = Describe(api, platform, name, id);
      if (facts.ok()) {
        devices.push_back(*std::move(facts));
      } else {
        problems.push_back(absl::StrCat("a device of ", name, ": ", facts.status().message()));
      }
    }
  }
  if (devices.empty()) {
    if (problems.empty()) {
      problems.emplace_back(platforms.empty() ? "no driver is installed"
                                              : "the installed drivers have none");
    }
    return absl::NotFoundError(
        absl::StrCat("there is no OpenCL device: ", absl::StrJoin(problems, "; "),
                     "; install a driver, such as pocl-opencl-icd"));
  }
  std::ranges::stable_sort(devices, {}, [](const DeviceFacts& facts) {
    return std::tuple(Rank(facts.type), facts.platform_name, facts.name);
  });
  return devices;
}

absl::StatusOr<DeviceFacts> FindDevice(const Api& api, absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(const uint32_t number, target::DeviceNumberOf(kKind, name));
  HONE_ASSIGN_OR_RETURN(std::vector<DeviceFacts> devices, ListDevices(api));
  if (number < devices.size()) return std::move(devices[number]);
  std::string known;
  for (size_t i = 0; i < devices.size(); ++i) {
    absl::StrAppend(&known, i == 0 ? "" : ", ", kKind, ":", i, " (", devices[i].name, ")");
  }
  return absl::NotFoundError(
      absl::StrCat("there is no device ", name, "; this machine has ", known));
}

}  // namespace hone::opencl

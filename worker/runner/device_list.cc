#include "worker/runner/device_list.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/cuda/api.h"
#include "common/target/cuda/detect.h"
#include "common/target/cuda/nvml.h"
#include "common/target/host.h"
#include "common/target/opencl/api.h"
#include "common/target/opencl/detect.h"
#include "common/target/target.h"

namespace hone::runner {
namespace {

absl::Status AddOpenCl(target::DeviceList& list) {
  HONE_ASSIGN_OR_RETURN(const opencl::Api* const api, opencl::LoadedApi());
  HONE_ASSIGN_OR_RETURN(const std::vector<opencl::DeviceFacts> devices, opencl::ListDevices(*api));
  for (size_t i = 0; i < devices.size(); ++i) {
    const opencl::DeviceFacts& device = devices[i];
    list.devices.push_back(
        {.device = absl::StrCat("opencl:", i),
         .name = device.name,
         .driver = absl::StrCat(device.platform_name, ", driver ", device.driver_version),
         .target = device.target});
  }
  return absl::OkStatus();
}

absl::Status AddCuda(target::DeviceList& list) {
  HONE_ASSIGN_OR_RETURN(const cuda::Api* const api, cuda::LoadedApi());
  HONE_ASSIGN_OR_RETURN(const std::vector<cuda::DeviceFacts> devices, cuda::ListDevices(*api));
  for (size_t i = 0; i < devices.size(); ++i) {
    const cuda::DeviceFacts& device = devices[i];
    const auto nvml = cuda::NvmlDevice::Open(device.pci);
    list.devices.push_back({.device = absl::StrCat("cuda:", i),
                            .name = device.name,
                            .driver = absl::StrCat("NVIDIA, driver of CUDA ", device.driver),
                            .target = device.target,
                            .problem = device.problem,
                            .warning = nvml.ok() ? (*nvml)->Look().Warning() : ""});
  }
  return absl::OkStatus();
}

}  // namespace

target::DeviceList ListDevices() {
  target::DeviceList list;
  list.devices.push_back({.device = "cpu",
                          .name = target::DescribeHost().cpu,
                          .driver = "",
                          .target = target::DetectHost()});
  const auto add = [&](const char* interface, const absl::Status& added) {
    if (!added.ok()) list.problems[interface] = std::string(added.message());
  };
  add("cuda", AddCuda(list));
  add("opencl", AddOpenCl(list));
  return list;
}

}  // namespace hone::runner

#include "client/cli/device_check.h"

#include "absl/strings/str_cat.h"

namespace hone::cli {

std::vector<HealthCheck> CheckDevices(const absl::StatusOr<target::DeviceList>& list) {
  using State = HealthCheck::State;
  if (!list.ok()) {
    return {{"OpenCL", State::kWarning, std::string(list.status().message()),
             "drivers are loaded by hone-runner; a driver that crashes it must be removed"}};
  }
  std::vector<HealthCheck> checks;
  for (const target::ListedDevice& device : list->devices) {
    if (device.target.kind != target::Kind::kOpenCl) continue;
    checks.push_back({device.device, State::kOk,
                      absl::StrCat(device.name, " (", device.driver, "), ", device.target.Key()),
                      ""});
  }
  if (checks.empty()) {
    checks.push_back({"OpenCL", State::kOk,
                      list->opencl_problem.empty() ? "there is no device" : list->opencl_problem,
                      "only needed for --target opencl"});
  }
  return checks;
}

}  // namespace hone::cli

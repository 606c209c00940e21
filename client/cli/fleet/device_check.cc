#include "client/cli/fleet/device_check.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hone::cli {

std::vector<HealthCheck> CheckDevices(const absl::StatusOr<target::DeviceList>& list,
                                      absl::string_view target) {
  using State = HealthCheck::State;
  if (!list.ok()) {
    return {{"GPUs", State::kWarning, std::string(list.status().message()),
             "drivers are loaded by hone-runner; a driver that crashes it must be removed"}};
  }
  std::vector<HealthCheck> checks;
  for (const target::ListedDevice& device : list->devices) {
    if (target::InterfaceOfDevice(device.device) == nullptr) continue;
    const std::string what = absl::StrCat(device.name, " (", device.driver, ")");
    if (!device.problem.empty()) {
      checks.push_back(
          {device.device, State::kWarning, absl::StrCat(what, " cannot be used"), device.problem});
    } else {
      checks.push_back({device.device, device.warning.empty() ? State::kOk : State::kWarning,
                        absl::StrCat(what, ", ", device.target.Key()), device.warning});
    }
  }
  for (const target::GpuInterface& interface : target::GpuInterfaces()) {
    const auto problem = list->problems.find(std::string(interface.word));
    if (problem == list->problems.end()) continue;
    if (target::InterfaceOfDevice(target) == &interface) continue;
    absl::string_view why = problem->second;
    absl::ConsumePrefix(&why, absl::StrCat(interface.name, " cannot be used: "));
    checks.push_back({std::string(interface.name), State::kOk, absl::StrCat("not used: ", why),
                      absl::StrCat("only needed for --target ", interface.word)});
  }
  return checks;
}

std::vector<HealthCheck> CheckNvrtc(const absl::StatusOr<std::string>& description,
                                    bool is_needed) {
  using State = HealthCheck::State;
  constexpr char kName[] = "NVRTC";
  if (!description.ok()) return {};  // another check reports a missing builder
  const auto json = nlohmann::json::parse(*description, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {};
  if (const auto nvrtc = json.find("nvrtc"); nvrtc != json.end() && nvrtc->is_object()) {
    return {{kName, State::kOk,
             absl::StrCat("version ", nvrtc->value("version", "unknown"), " (",
                          nvrtc->value("path", ""), ") compiles for NVIDIA's GPUs"),
             ""}};
  }
  return {{kName, is_needed ? State::kWarning : State::kOk,
           json.value("nvrtc_problem", "is missing"),
           absl::StrCat(is_needed ? "" : "only ", "needed to build for --target cuda")}};
}

}  // namespace hone::cli

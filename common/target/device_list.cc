#include "common/target/device_list.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/target/device_name.h"

namespace hone::target {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::string_view kCpu = "cpu";
constexpr GpuInterface kInterfaces[] = {{"cuda", "CUDA", Kind::kCuda},
                                        {"opencl", "OpenCL", Kind::kOpenCl}};

absl::Status Refuse(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a list of devices: ", why));
}

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Returns the full name of a device: "opencl:0" for "opencl".
absl::StatusOr<std::string> FullName(absl::string_view name) {
  if (name == kCpu) return std::string(kCpu);
  if (const GpuInterface* const interface = InterfaceOfDevice(name); interface != nullptr) {
    const auto number = DeviceNumberOf(interface->word, name);
    if (number.ok()) return absl::StrCat(interface->word, ":", *number);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' is not the name of a device; the names are cpu, ",
      absl::StrJoin(kInterfaces, ", ", [](std::string* out, const GpuInterface& interface) {
        absl::StrAppend(out, interface.word, " (the first ", interface.name, " device), ",
                        interface.word, ":N");
      })));
}

}  // namespace

std::string DeviceList::ToJson() const {
  Json json = {{"devices", Json::array()}, {"problems", problems}};
  for (const ListedDevice& device : devices) {
    json["devices"].push_back({{"device", device.device},
                               {"name", device.name},
                               {"driver", device.driver},
                               {"target", device.target.ToText()},
                               {"problem", device.problem},
                               {"warning", device.warning}});
  }
  return json.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

absl::StatusOr<DeviceList> DeviceList::FromJson(absl::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("devices") || !json["devices"].is_array()) {
    return Refuse("it is not a JSON object with the key devices");
  }
  DeviceList list;
  if (const auto problems = json.find("problems"); problems != json.end()) {
    if (!problems->is_object()) return Refuse("the problems are not a JSON object");
    for (const auto& [word, why] : problems->items()) {
      list.problems[word] = why.is_string() ? why.get<std::string>() : "";
    }
  }
  for (const Json& one : json["devices"]) {
    if (!one.is_object()) return Refuse("a device is not a JSON object");
    const absl::StatusOr<Target> target = Target::FromText(TextOf(one, "target"));
    if (!target.ok()) return Refuse(target.status().message());
    list.devices.push_back({TextOf(one, "device"), TextOf(one, "name"), TextOf(one, "driver"),
                            *target, TextOf(one, "problem"), TextOf(one, "warning")});
  }
  return list;
}

absl::StatusOr<ListedDevice> DeviceList::Find(absl::string_view name) const {
  HONE_ASSIGN_OR_RETURN(const std::string wanted, FullName(name));
  const GpuInterface* const interface = InterfaceOfDevice(wanted);
  bool any = false;
  for (const ListedDevice& device : devices) {
    any = any || InterfaceOfDevice(device.device) == interface;
    if (device.device != wanted) continue;
    if (device.problem.empty()) return device;
    return absl::FailedPreconditionError(
        absl::StrCat(name, " (", device.name, ") cannot be used: ", device.problem));
  }
  if (!any && interface != nullptr) {
    const auto problem = problems.find(std::string(interface->word));
    return absl::FailedPreconditionError(absl::StrCat(
        name, ": ",
        problem == problems.end() ? absl::StrCat("there is no ", interface->name, " device")
                                  : problem->second));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": this machine has only ",
                   absl::StrJoin(devices, ", ", [](std::string* out, const ListedDevice& device) {
                     absl::StrAppend(out, device.device, " (", device.name, ")");
                   })));
}

absl::Span<const GpuInterface> GpuInterfaces() { return kInterfaces; }

const GpuInterface* InterfaceOfDevice(absl::string_view word) {
  for (const GpuInterface& interface : kInterfaces) {
    if (word.substr(0, word.find(':')) == interface.word) return &interface;
  }
  return nullptr;
}

const GpuInterface* InterfaceOfKey(absl::string_view key) {
  // "<architecture>-<device>-<kind>-<cores>c-<8 hex digits>"; <device> may contain hyphens.
  const std::vector<absl::string_view> parts = absl::StrSplit(key, '-');
  if (parts.size() < 5 || parts.back().size() != 8 ||
      !std::ranges::all_of(parts.back(), absl::ascii_isxdigit)) {
    return nullptr;
  }
  for (const GpuInterface& interface : kInterfaces) {
    if (parts[parts.size() - 3] == interface.word) return &interface;
  }
  return nullptr;
}

}  // namespace hone::target

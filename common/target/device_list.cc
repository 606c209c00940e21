#include "common/target/device_list.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace hone::target {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::string_view kCpu = "cpu";
constexpr absl::string_view kOpenCl = "opencl";

absl::Status Refuse(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a list of devices: ", why));
}

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// The full name of a device: "opencl" is "opencl:0".
absl::StatusOr<std::string> FullName(absl::string_view name) {
  absl::string_view number = name;
  int index = 0;
  if (name == kCpu) return std::string(kCpu);
  if (name == kOpenCl) return absl::StrCat(kOpenCl, ":0");
  if (absl::ConsumePrefix(&number, kOpenCl) && absl::ConsumePrefix(&number, ":") &&
      absl::SimpleAtoi(number, &index) && index >= 0) {
    return absl::StrCat(kOpenCl, ":", index);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name,
                   "' is not the name of a device; the names are cpu, opencl (the first OpenCL "
                   "device) and opencl:N"));
}

}  // namespace

std::string DeviceList::ToJson() const {
  Json json = {{"devices", Json::array()}, {"opencl_problem", opencl_problem}};
  for (const ListedDevice& device : devices) {
    json["devices"].push_back({{"device", device.device},
                               {"name", device.name},
                               {"driver", device.driver},
                               {"target", device.target.ToText()}});
  }
  return json.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

absl::StatusOr<DeviceList> DeviceList::FromJson(absl::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("devices") || !json["devices"].is_array()) {
    return Refuse("it is not a JSON object with the key devices");
  }
  DeviceList list{.opencl_problem = TextOf(json, "opencl_problem")};
  for (const Json& one : json["devices"]) {
    if (!one.is_object()) return Refuse("a device is not a JSON object");
    const absl::StatusOr<Target> target = Target::FromText(TextOf(one, "target"));
    if (!target.ok()) return Refuse(target.status().message());
    list.devices.push_back(
        {TextOf(one, "device"), TextOf(one, "name"), TextOf(one, "driver"), *target});
  }
  return list;
}

absl::StatusOr<ListedDevice> DeviceList::Find(absl::string_view name) const {
  HONE_ASSIGN_OR_RETURN(const std::string wanted, FullName(name));
  bool any_opencl = false;
  for (const ListedDevice& device : devices) {
    if (device.device == wanted) return device;
    any_opencl = any_opencl || device.target.kind == Kind::kOpenCl;
  }
  if (!any_opencl && wanted != kCpu) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, ": ", opencl_problem.empty() ? "there is no OpenCL device" : opencl_problem));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": this machine has only ",
                   absl::StrJoin(devices, ", ", [](std::string* out, const ListedDevice& device) {
                     absl::StrAppend(out, device.device, " (", device.name, ")");
                   })));
}

bool NamesOpenClDevice(absl::string_view word) {
  return word == kOpenCl || absl::StartsWith(word, absl::StrCat(kOpenCl, ":"));
}

}  // namespace hone::target

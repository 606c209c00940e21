#include "client/cli/target_argument.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/connection/program_call.h"
#include "common/base/nearest.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

// A key consists of parts joined by hyphens; the last part has eight hex digits.
bool LooksLikeKey(absl::string_view text) {
  const size_t hyphen = text.rfind('-');
  if (hyphen == absl::string_view::npos) return false;
  const absl::string_view tail = text.substr(hyphen + 1);
  return tail.size() == 8 && std::all_of(tail.begin(), tail.end(), absl::ascii_isxdigit);
}

}  // namespace

target::Kind TargetArgument::KindOfTarget() const {
  if (device.has_value()) return device->target.kind;
  for (const auto* const interface :
       {target::InterfaceOfDevice(given), target::InterfaceOfKey(given)}) {
    if (interface != nullptr) return interface->kind;
  }
  const absl::StatusOr<target::Target> preset =
      IsNative() ? absl::NotFoundError("") : target::TargetByName(given);
  return preset.ok() ? preset->kind : target::Kind::kCpu;
}

absl::Status TargetArgument::FindDevice() {
  const bool key = target::InterfaceOfKey(given) != nullptr;
  if (device.has_value() || !(NamesDevice() || key)) return absl::OkStatus();
  const absl::StatusOr<target::DeviceList> list = client::ListDevices();
  if (!key) {
    HONE_RETURN_IF_ERROR(list.status());
    HONE_ASSIGN_OR_RETURN(device, list->Find(given));
    return absl::OkStatus();
  }
  if (!list.ok()) return absl::OkStatus();  // the device may be on another machine
  for (const target::ListedDevice& one : list->devices) {
    if (one.target.Key() == given) device = one;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TargetArgument::Key() const {
  if (IsNative()) return host.Key();
  if (device.has_value()) return device->target.Key();
  if (NamesDevice()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--target ", given, ": this machine has no such ",
                     target::InterfaceOfDevice(given)->name, " device"));
  }
  const absl::StatusOr<target::Target> preset = target::TargetByName(given);
  if (preset.ok()) return preset->Key();
  if (LooksLikeKey(given)) return given;
  const std::string word = absl::AsciiStrToLower(given);
  if (word == "gpu" || word == "nvidia" || word == "amd") {
    return absl::InvalidArgumentError(
        absl::StrCat("--target ", given,
                     " does not say which kind of GPU; give cuda for one of "
                     "NVIDIA, opencl for another one, or a preset such as nvidia/a100"));
  }
  if (word == "cpu") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--target ", given, ": the CPU of this machine is called native, which is the default"));
  }
  std::vector<std::string> names = target::TargetNames();
  for (const target::GpuInterface& interface : target::GpuInterfaces()) {
    names.emplace_back(interface.word);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown target ", given, DidYouMeanOneOf(given, "names", names),
                   " (the first such device of this machine), cuda:N, opencl:N; or give a key"));
}

absl::StatusOr<std::string> TargetArgument::Text() const {
  if (IsNative()) return host.ToText();
  if (device.has_value()) return device->target.ToText();
  const absl::StatusOr<target::Target> preset =
      NamesDevice() ? absl::NotFoundError("") : target::TargetByName(given);
  return preset.ok() ? preset->ToText() : Key();
}

absl::StatusOr<TargetArgument> ReadTargetArgument(const std::string& given) {
  TargetArgument argument{.given = given};
  HONE_RETURN_IF_ERROR(argument.FindDevice());
  argument.host = target::DetectHost();
  HONE_RETURN_IF_ERROR(argument.Key().status());
  return argument;
}

}  // namespace hone::cli

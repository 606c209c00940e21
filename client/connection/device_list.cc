#include "client/connection/device_list.h"

#include "absl/strings/str_cat.h"
#include "client/connection/program_call.h"
#include "common/base/status_macros.h"

namespace hone::client {

absl::StatusOr<target::DeviceList> ListDevices(const std::string& program_dir) {
  HONE_ASSIGN_OR_RETURN(const std::string text, CallProgram({.program = "hone-runner",
                                                             .purpose = "lists the devices",
                                                             .words = {"--list-devices"},
                                                             .program_dir = program_dir}));
  absl::StatusOr<target::DeviceList> list = target::DeviceList::FromJson(text);
  if (list.ok()) return list;
  return absl::AbortedError(absl::StrCat("hone-runner --list-devices: ", list.status().message(),
                                         "; hone and hone-runner must be of the same version"));
}

}  // namespace hone::client

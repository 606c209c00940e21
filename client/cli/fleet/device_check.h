#ifndef HONE_CLIENT_CLI_FLEET_DEVICE_CHECK_H_
#define HONE_CLIENT_CLI_FLEET_DEVICE_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/fleet/health_check.h"
#include "common/target/device_list.h"

namespace hone::cli {

// Checks the GPUs of a machine: one check for each, with its problem if it has one. For each
// interface without a device, a check gives the reason, which is not a problem. There is no such
// check for the interface of the target that the command line names, see CheckTarget.
std::vector<HealthCheck> CheckDevices(const absl::StatusOr<target::DeviceList>& list,
                                      absl::string_view target = "");

// Whether this machine can build for NVIDIA's GPUs, from what `hone-builder --describe` prints.
// If it cannot, this is a warning if the machine has such a GPU or if one is the target, and no
// problem otherwise.
std::vector<HealthCheck> CheckNvrtc(const absl::StatusOr<std::string>& description, bool is_needed);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_FLEET_DEVICE_CHECK_H_

#ifndef HONE_CLIENT_CLI_DEVICE_CHECK_H_
#define HONE_CLIENT_CLI_DEVICE_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/health_check.h"
#include "common/target/device_list.h"

namespace hone::cli {

// Checks the GPUs of a machine: one check for each, with its problem if it has one. For each
// interface without a device, a check gives the reason, which is not a problem.
std::vector<HealthCheck> CheckDevices(const absl::StatusOr<target::DeviceList>& list);

// Whether this machine can build for NVIDIA's GPUs, from what `hone-builder --describe` prints.
// If it cannot, this is a warning if the machine has such a GPU, and no problem otherwise.
std::vector<HealthCheck> CheckNvrtc(const absl::StatusOr<std::string>& description, bool has_gpu);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_DEVICE_CHECK_H_

#ifndef HONE_CLIENT_CLI_DEVICE_CHECK_H_
#define HONE_CLIENT_CLI_DEVICE_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/health_check.h"
#include "common/target/device_list.h"

namespace hone::cli {

// The OpenCL devices of a machine, one line each; or why there are none, which is no problem.
std::vector<HealthCheck> CheckDevices(const absl::StatusOr<target::DeviceList>& list);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_DEVICE_CHECK_H_

#ifndef HONE_CLIENT_CONNECTION_DEVICE_LIST_H_
#define HONE_CLIENT_CONNECTION_DEVICE_LIST_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/target/device_list.h"

namespace hone::client {

// Asks `hone-runner --list-devices`: only that process loads the drivers of devices, because they
// may start threads, hang or crash. Errors as for CallProgram; Aborted also if the answer cannot be
// read.
absl::StatusOr<target::DeviceList> ListDevices(const std::string& program_dir = "");

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_DEVICE_LIST_H_

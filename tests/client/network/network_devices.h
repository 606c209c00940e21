#ifndef HONE_TESTS_CLIENT_NETWORK_NETWORK_DEVICES_H_
#define HONE_TESTS_CLIENT_NETWORK_NETWORK_DEVICES_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/target/target.h"

namespace hone::network {

// The first OpenCL device of this machine. Errors as for opencl::FindDevice.
absl::StatusOr<target::Target> OpenClTarget();

// The first device of the driver in tests/fakes/cuda/libraries, which is this process's driver from
// then on.
absl::StatusOr<target::Target> FakeCudaTarget();
// The folder of that driver, for LD_LIBRARY_PATH.
std::string FakeCudaFolder();

}  // namespace hone::network

#endif  // HONE_TESTS_CLIENT_NETWORK_NETWORK_DEVICES_H_

#ifndef HONE_TESTS_CLIENT_NETWORK_NETWORK_DEVICES_H_
#define HONE_TESTS_CLIENT_NETWORK_NETWORK_DEVICES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/target/gpu_context.h"
#include "common/target/target.h"

namespace hone::network {

// The first OpenCL device of this machine. Errors as for opencl::FindDevice.
absl::StatusOr<target::Target> OpenClTarget();
absl::StatusOr<std::unique_ptr<target::GpuContext>> OpenOpenCl();

// The first device of the driver in tests/fakes/cuda/libraries.
absl::StatusOr<target::Target> FakeCudaTarget();
absl::StatusOr<std::unique_ptr<target::GpuContext>> OpenFakeCuda();

}  // namespace hone::network

#endif  // HONE_TESTS_CLIENT_NETWORK_NETWORK_DEVICES_H_

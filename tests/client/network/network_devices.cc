#include "tests/client/network/network_devices.h"

#include <cstdlib>

#include "common/base/status_macros.h"
#include "common/target/cuda/api.h"
#include "common/target/cuda/detect.h"
#include "common/target/opencl/targets.h"

namespace hone::network {
absl::StatusOr<target::Target> OpenClTarget() {
  setenv("POCL_KERNEL_CACHE", "0", 0);                     // tests leave nothing in the home folder
  setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 0);  // PoCL then compiles much faster
  return opencl::TargetOf("opencl");
}

absl::StatusOr<target::Target> FakeCudaTarget() {
  static const auto* const opened =
      new absl::StatusOr<cuda::Api>(cuda::OpenApi(FAKE_CUDA_DIR "/libcuda.so.1"));
  HONE_RETURN_IF_ERROR(opened->status());
  HONE_ASSIGN_OR_RETURN(const cuda::DeviceFacts facts, cuda::FindDevice(**opened, "cuda"));
  return facts.target;
}

std::string FakeCudaFolder() { return FAKE_CUDA_DIR; }

}  // namespace hone::network

#include "tests/client/network/network_devices.h"

#include <cstdlib>

#include "common/base/status_macros.h"
#include "common/target/cuda/context.h"
#include "common/target/open_gpu.h"
#include "common/target/opencl/targets.h"

namespace hone::network {
namespace {

absl::StatusOr<cuda::DeviceFacts> FakeDevice(const cuda::Api*& api) {
  static const auto* const opened =
      new absl::StatusOr<cuda::Api>(cuda::OpenApi(FAKE_CUDA_DIR "/libcuda.so.1"));
  HONE_RETURN_IF_ERROR(opened->status());
  api = &**opened;
  return cuda::FindDevice(*api, "cuda");
}

}  // namespace

absl::StatusOr<target::Target> OpenClTarget() {
  setenv("POCL_KERNEL_CACHE", "0", 0);                     // tests leave nothing in the home folder
  setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 0);  // PoCL then compiles much faster
  return opencl::TargetOf("opencl");
}

absl::StatusOr<std::unique_ptr<target::GpuContext>> OpenOpenCl() {
  return target::OpenGpu("opencl");
}

absl::StatusOr<target::Target> FakeCudaTarget() {
  const cuda::Api* api = nullptr;
  HONE_ASSIGN_OR_RETURN(const cuda::DeviceFacts facts, FakeDevice(api));
  return facts.target;
}

absl::StatusOr<std::unique_ptr<target::GpuContext>> OpenFakeCuda() {
  const cuda::Api* api = nullptr;
  HONE_ASSIGN_OR_RETURN(const cuda::DeviceFacts facts, FakeDevice(api));
  return cuda::CudaContext::Create(*api, facts);
}

}  // namespace hone::network

#ifndef HONE_WORKER_RUNNER_CUDA_CONTEXT_H_
#define HONE_WORKER_RUNNER_CUDA_CONTEXT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/cuda/api.h"
#include "common/target/cuda/detect.h"
#include "common/target/cuda/nvml.h"
#include "worker/runner/gpu_context.h"

namespace hone::runner {

// A CUDA device with its own context. Everything runs on the context's default stream, in order.
class CudaContext final : public GpuContext {
 public:
  // ResourceExhausted, Unavailable: the driver cannot use the device. `api` must outlive the
  // context.
  static absl::StatusOr<std::unique_ptr<CudaContext>> Create(const cuda::Api& api,
                                                             const cuda::DeviceFacts& facts);
  ~CudaContext() override;

  target::Kind kind() const override { return target::Kind::kCuda; }
  absl::StatusOr<std::unique_ptr<GpuMemory>> Allocate(int64_t bytes, int64_t data_at,
                                                      int64_t data_bytes) override;
  absl::StatusOr<std::unique_ptr<GpuProgram>> Load(const target::GpuModule& module,
                                                   absl::string_view what) override;
  ReferenceKernels MakeReferenceKernels() const override;
  // Sets the clock and temperature of the GPU, if NVML is installed.
  void Observe(record::MachineState& state) override;
  bool lost() const override { return lost_; }

  const cuda::Api& api() const { return api_; }
  // Converts the code of a call, see cuda::ToStatus. After a fault of a kernel, the driver refuses
  // everything in this process; after an error of the device it often does. Both count as lost.
  absl::Status Check(cuda::Result code, absl::string_view what);

 private:
  explicit CudaContext(const cuda::Api& api) : api_(api) {}

  const cuda::Api& api_;
  cuda::Context context_ = nullptr;
  std::unique_ptr<cuda::NvmlDevice> nvml_;  // null if NVML is missing
  bool lost_ = false;
};

// The CUDA device "cuda" or "cuda:N" of this machine. Errors as for cuda::FindDevice and
// CudaContext::Create.
absl::StatusOr<std::unique_ptr<GpuContext>> OpenCudaContext(absl::string_view name);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_CUDA_CONTEXT_H_

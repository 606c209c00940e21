#ifndef HONE_COMMON_TARGET_CUDA_CONTEXT_H_
#define HONE_COMMON_TARGET_CUDA_CONTEXT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/cuda/api.h"
#include "common/target/cuda/detect.h"
#include "common/target/cuda/nvml.h"
#include "common/target/gpu_context.h"

namespace hone::cuda {

// A CUDA device with its own context. Everything runs on the context's default stream, in order.
class CudaContext final : public target::GpuContext {
 public:
  // ResourceExhausted, Unavailable: the driver cannot use the device. `api` must outlive the
  // context.
  static absl::StatusOr<std::unique_ptr<CudaContext>> Create(const Api& api,
                                                             const DeviceFacts& facts);
  ~CudaContext() override;

  target::Kind kind() const override { return target::Kind::kCuda; }
  absl::StatusOr<std::unique_ptr<target::GpuMemory>> Allocate(int64_t bytes, int64_t data_at,
                                                              int64_t data_bytes) override;
  absl::StatusOr<std::unique_ptr<target::GpuProgram>> Load(const target::GpuModule& module,
                                                           absl::string_view what) override;
  // The clock and temperature of the GPU, if NVML is installed.
  target::GpuConditions Observe() override;
  bool lost() const override { return lost_; }

  // Makes this the calling thread's context, which the functions of the driver use, because a
  // thread can have several contexts. Ask for the functions anew after anything may have used
  // another one.
  const Api& api() const {
    api_.CtxSetCurrent(context_);
    return api_;
  }
  // Converts the code of a call, see ToStatus. After a fault of a kernel, the driver refuses
  // everything in this process; after an error of the device it often does. Both count as lost.
  absl::Status Check(Result code, absl::string_view what);

 private:
  explicit CudaContext(const Api& api) : api_(api) {}

  const Api& api_;
  Context context_ = nullptr;
  std::unique_ptr<NvmlDevice> nvml_;  // null if NVML is missing
  bool lost_ = false;
};

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_CONTEXT_H_

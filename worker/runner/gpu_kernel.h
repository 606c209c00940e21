#ifndef HONE_WORKER_RUNNER_GPU_KERNEL_H_
#define HONE_WORKER_RUNNER_GPU_KERNEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/target/gpu_context.h"
#include "common/target/gpu_module.h"
#include "worker/runner/device.h"
#include "worker/runner/gpu_buffer.h"

namespace hone::runner {

// The kernels of one module, which together compute a workload.
//
// The time of a run is taken on the device's clock, from the start of its first launch to the end
// of its last one, including the gaps between them. With `count` runs, all launches are put on the
// queue one behind the other, and the time is that of the whole sequence. This is what a user who
// launches the kernels back to back sees. The delay before the first launch and the host's wait for
// the last one are not included. CUDA starts many launches as graphs, so the gaps are those of the
// device even if a kernel is shorter than the host's call that launches it. OpenCL has no graphs.
class GpuKernel final : public DeviceKernel {
 public:
  // `flush_caches` empties the device's caches. InvalidArgument: the module is for another kind of
  // device, has no launch or an impossible one, or exceeds a limit of the device; nothing was
  // launched then. FailedPrecondition: the driver refuses the code; the message says why.
  // ResourceExhausted: no memory for packed constants and workspace.
  static absl::StatusOr<std::unique_ptr<GpuKernel>> Load(
      target::GpuContext& context, const target::GpuModule& module, uint64_t placement,
      std::function<absl::Status()> flush_caches);

  int64_t parts() const override { return 0; }
  absl::Status Prepack(DeviceBuffers buffers) override;
  absl::Status PoisonWorkspace() override;
  absl::StatusOr<std::string> WrittenOutside() override;
  absl::StatusOr<double> Run(DeviceBuffers buffers, int64_t count, bool flushed) override;
  absl::StatusOr<double> RunPart(DeviceBuffers buffers, int64_t begin, int64_t end) override;

 private:
  GpuKernel(const target::GpuModule& module, std::unique_ptr<target::GpuProgram> program,
            std::function<absl::Status()> flush_caches);
  absl::Status SetArguments(DeviceBuffers buffers, const std::vector<size_t>& launches);

  const size_t arguments_;
  const std::unique_ptr<target::GpuProgram> program_;
  const std::function<absl::Status()> flush_caches_;
  std::vector<size_t> prepack_, run_;     // launches, in order
  std::unique_ptr<GpuBuffer> packed_;     // null if there are no packed constants
  std::unique_ptr<GpuBuffer> workspace_;  // null if there is none
};

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_GPU_KERNEL_H_

#ifndef HONE_WORKER_RUNNER_OPENCL_KERNEL_H_
#define HONE_WORKER_RUNNER_OPENCL_KERNEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/target/gpu_module.h"
#include "worker/runner/device.h"
#include "worker/runner/opencl_buffer.h"
#include "worker/runner/opencl_context.h"

namespace hone::runner {

// The kernels of one module, which together compute a workload.
//
// The time of a run is taken on the device's clock, from the start of its first launch to the end
// of its last one, including the gaps between them. With `count` runs, all launches are put on the
// queue one behind the other, and the time is that of the whole sequence. This is what a user sees
// who launches the kernels back to back; the delay before the first launch and the host's wait for
// the last one are left out. A driver whose clock says nothing or more than the host's is not
// believed: then the time is the host's, from the first submission to the end.
class OpenClKernel final : public DeviceKernel {
 public:
  // `flush_caches` empties the device's caches. InvalidArgument: the module is not for OpenCL, has
  // no launch or an impossible one, or exceeds a limit of the device; nothing was launched then.
  // FailedPrecondition: the driver refuses the code; the message has the build log.
  // ResourceExhausted: no memory for packed constants and workspace.
  static absl::StatusOr<std::unique_ptr<OpenClKernel>> Load(
      OpenClContext& context, const target::GpuModule& module, uint64_t placement,
      std::function<absl::Status()> flush_caches);

  int64_t parts() const override { return 0; }
  absl::Status Prepack(DeviceBuffers buffers) override;
  absl::Status PoisonWorkspace() override;
  absl::StatusOr<double> Run(DeviceBuffers buffers, int64_t count, bool flushed) override;
  absl::StatusOr<double> RunPart(DeviceBuffers buffers, int64_t begin, int64_t end) override;

 private:
  struct Launch {
    std::string name;
    bool prepack;
    ClOwned<cl_kernel> kernel;
    std::array<size_t, 3> global;  // threads in all
    std::array<size_t, 3> local;   // of a block
  };

  explicit OpenClKernel(OpenClContext& context)
      : context_(context), program_(nullptr, context.api().ReleaseProgram) {}
  absl::Status AddLaunch(const target::GpuLaunch& launch);
  absl::Status SetArguments(DeviceBuffers buffers, bool prepack);
  // Runs the launches of one kind `count` times in a row; returns nanoseconds.
  absl::StatusOr<double> RunSequence(bool prepack, int64_t count);

  OpenClContext& context_;
  std::function<absl::Status()> flush_caches_;
  size_t arguments_ = 0;
  ClOwned<cl_program> program_;
  std::vector<Launch> launches_;
  std::unique_ptr<OpenClBuffer> packed_;     // null if there are no packed constants
  std::unique_ptr<OpenClBuffer> workspace_;  // null if there is none
};

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_OPENCL_KERNEL_H_

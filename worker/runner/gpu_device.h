#ifndef HONE_WORKER_RUNNER_GPU_DEVICE_H_
#define HONE_WORKER_RUNNER_GPU_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/ir/error_bound.h"
#include "common/target/device_list.h"
#include "common/target/gpu_context.h"
#include "common/target/gpu_module.h"
#include "common/target/target.h"
#include "worker/runner/device.h"
#include "worker/runner/peak.h"

namespace hone::runner {

// A tensor in the memory of a GPU: a part of an allocation that has a canary on each side. Writes
// further away are not detected; a GPU reports some of them as a fault.
class GpuBuffer final : public DeviceBuffer {
 public:
  // `placement` chooses the offset within the first page. ResourceExhausted: more than the device
  // allows or has.
  static absl::StatusOr<std::unique_ptr<GpuBuffer>> Create(target::GpuContext& context,
                                                           int64_t bytes, uint64_t placement);

  int64_t bytes() const override { return bytes_; }
  absl::Status Write(absl::FunctionRef<void(void*)> fill) override;
  absl::StatusOr<const void*> Read() override;
  absl::Status Poison() override;
  absl::StatusOr<std::optional<int64_t>> WrittenOutside() override;

  // The memory to pass to kernels.
  const target::GpuMemory* memory() const { return memory_.get(); }

 private:
  GpuBuffer(std::unique_ptr<target::GpuMemory> memory, int64_t bytes, int64_t offset)
      : memory_(std::move(memory)), bytes_(bytes), offset_(offset) {}

  const std::unique_ptr<target::GpuMemory> memory_;
  const int64_t bytes_;
  const int64_t offset_;          // of the data in the allocation
  std::unique_ptr<char[]> host_;  // the memory that Read returns
};

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

// Returns the largest errors that the interface of a device allows for its functions. The check of
// outputs allows for them, so that no correct kernel is refused because the functions of its device
// are less accurate than those of a CPU.
ir::ErrorOfOp ErrorsOf(target::Kind kind);

// Opens a GPU of this machine: "cuda", "cuda:N", "opencl" or "opencl:N". Loading a driver starts
// threads. InvalidArgument: not such a name. NotFound: no driver or no such device.
// FailedPrecondition, Unavailable: the driver cannot use it.
absl::StatusOr<std::unique_ptr<Device>> MakeGpuDevice(absl::string_view name);
// The same for an open context.
std::unique_ptr<Device> MakeGpuDevice(std::unique_ptr<target::GpuContext> context);

// Measures the peaks of a GPU, see MeasureGpuPeak(target::GpuContext&). Errors as for
// MakeGpuDevice.
absl::StatusOr<Peak> MeasureGpuPeak(absl::string_view name);

// Returns the devices of this machine. Loads the drivers of GPUs into this process.
target::DeviceList ListDevices();

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_GPU_DEVICE_H_

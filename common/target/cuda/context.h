#ifndef HONE_COMMON_TARGET_CUDA_CONTEXT_H_
#define HONE_COMMON_TARGET_CUDA_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/cuda/api.h"
#include "common/target/cuda/detect.h"
#include "common/target/cuda/nvml.h"
#include "common/target/gpu_context.h"
#include "common/target/gpu_module.h"

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

// A CUDA graph of launches. The host starts it with one call, and the device then starts the
// launches one after the other without the host. So a sequence of tiny kernels takes the time of
// the device, and not that of the host's calls, each of which takes some microseconds.
class LaunchGraph {
 public:
  // Records the launches that `launch` puts on a stream; nothing runs. Every error means that the
  // driver or the device cannot do this, and says nothing about the state of the device.
  static absl::StatusOr<std::unique_ptr<LaunchGraph>> Record(
      CudaContext& context, absl::FunctionRef<Result(Stream)> launch);
  ~LaunchGraph();
  LaunchGraph(const LaunchGraph&) = delete;
  LaunchGraph& operator=(const LaunchGraph&) = delete;

  // Puts all launches on the context's default stream.
  absl::Status Launch();

 private:
  LaunchGraph(CudaContext& context, GraphExec exec) : context_(context), exec_(exec) {}

  CudaContext& context_;
  const GraphExec exec_;
};

// An allocation of CUDA.
class CudaMemory final : public target::GpuMemory {
 public:
  // The memory that begins at `pointer`, which the destructor frees.
  CudaMemory(CudaContext& context, DevicePointer pointer, int64_t data_at)
      : context_(context), pointer_(pointer), data_at_(data_at) {}
  ~CudaMemory() override;

  absl::Status Write(int64_t at, int64_t bytes, const void* from) override;
  absl::Status Read(int64_t at, int64_t bytes, void* to) override;
  absl::Status Fill(int64_t at, int64_t bytes, unsigned char value) override;
  DevicePointer data() const { return At(data_at_); }

 private:
  DevicePointer At(int64_t at) const { return pointer_ + static_cast<uint64_t>(at); }

  CudaContext& context_;
  const DevicePointer pointer_;
  const int64_t data_at_;
};

// A launch of a loaded kernel.
struct CudaLaunch {
  std::string name;
  Function function = nullptr;
  unsigned grid[3], block[3];
  unsigned dynamic_bytes = 0;    // of shared memory
  std::vector<uint64_t> values;  // of the parameters
};

// The kernels of a cubin or PTX text that the driver has loaded. Times are between two events. Many
// launches in a row are launched as graphs, unless the driver cannot do this.
class CudaProgram final : public target::GpuProgram {
 public:
  // Loads the code of a module. Each launch gets its shared memory that the code does not declare
  // as dynamic shared memory. InvalidArgument: a kernel is missing, or needs more registers or
  // shared memory than the device has. FailedPrecondition: the driver refuses the code.
  static absl::StatusOr<std::unique_ptr<CudaProgram>> Create(CudaContext& context,
                                                             const target::GpuModule& module,
                                                             absl::string_view what);
  ~CudaProgram() override;

  absl::Status SetArguments(size_t launch,
                            absl::Span<const target::GpuArgument> arguments) override;
  absl::StatusOr<double> Run(absl::Span<const size_t> launches, int64_t count) override;

 private:
  explicit CudaProgram(CudaContext& context) : context_(context) {}
  absl::Status AddLaunch(const target::GpuLaunch& launch);
  // Returns a graph of these launches, `count` times in a row; null if the driver cannot make one.
  LaunchGraph* GraphOf(absl::Span<const size_t> launches, int64_t count);

  CudaContext& context_;
  Module module_ = nullptr;
  Event begin_ = nullptr, end_ = nullptr;
  std::vector<CudaLaunch> launches_;
  bool has_graphs_ = true;              // false once the driver has refused one
  std::unique_ptr<LaunchGraph> graph_;  // the last one, of the launches below; may be null
  std::vector<size_t> in_graph_;
};

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_CONTEXT_H_

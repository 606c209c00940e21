#ifndef HONE_COMMON_TARGET_GPU_CONTEXT_H_
#define HONE_COMMON_TARGET_GPU_CONTEXT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/target/gpu_module.h"

// An interface for GPUs, such as OpenCL or CUDA. Everything that runs kernels on a GPU of this
// machine uses it: the runner, and `hone run` (module_call.h).
namespace hone::target {

// An allocation on a device. Kernels see a part of it: the data. Positions are in bytes from the
// start of the allocation.
class GpuMemory {
 public:
  virtual ~GpuMemory() = default;
  virtual absl::Status Write(int64_t at, int64_t bytes, const void* from) = 0;
  virtual absl::Status Read(int64_t at, int64_t bytes, void* to) = 0;
  // Sets every byte. May return before it is done; everything that follows waits for it.
  virtual absl::Status Fill(int64_t at, int64_t bytes, unsigned char value) = 0;
};

// A parameter of a kernel: the data of an allocation (null: a null pointer), or a number.
using GpuArgument = std::variant<const GpuMemory*, int32_t>;

// The kernels of a module on a device.
class GpuProgram {
 public:
  virtual ~GpuProgram() = default;
  // Sets the parameters of a launch of the module from now on. InvalidArgument: the kernel refuses
  // them.
  virtual absl::Status SetArguments(size_t launch, absl::Span<const GpuArgument> arguments) = 0;
  // Runs launches one after the other, `count` times in a row, and waits for them. Returns the
  // nanoseconds from the start of the first launch to the end of the last one. REQUIRES: there is a
  // launch.
  virtual absl::StatusOr<double> Run(absl::Span<const size_t> launches, int64_t count) = 0;
};

// What a device knows about itself better than the host's monitor. 0: unknown.
struct GpuConditions {
  double clock_mhz = 0;
  double temperature_c = 0;
};

// One device with an in-order queue, and its limits. Shared by its memory and programs, which it
// must outlive. Single-threaded.
class GpuContext {
 public:
  virtual ~GpuContext() = default;
  virtual Kind kind() const = 0;
  // Allocates memory whose data are [data_at, data_at + data_bytes). REQUIRES: data_at is a
  // multiple of buffer_alignment. ResourceExhausted: the device has not enough memory.
  virtual absl::StatusOr<std::unique_ptr<GpuMemory>> Allocate(int64_t bytes, int64_t data_at,
                                                              int64_t data_bytes) = 0;
  // Loads the kernels of a module, whose launches keep to the limits below. `what` names its code
  // in messages. InvalidArgument: a kernel is missing, has other parameters, or needs more than the
  // device has. FailedPrecondition: the driver refuses the code; the message says why.
  virtual absl::StatusOr<std::unique_ptr<GpuProgram>> Load(const GpuModule& module,
                                                           absl::string_view what) = 0;
  virtual GpuConditions Observe() { return {}; }
  // Whether the device failed in a way after which this process can no longer use it.
  virtual bool lost() const = 0;

  bool is_cpu = false;
  bool uses_host = false;   // its cores or its memory are those of the host
  std::string bus_address;  // on the PCI bus: "0000:3b:00.0"; "": unknown
  int units = 1;
  int64_t max_allocation_bytes = 0;
  int64_t cache_bytes = 0;
  int64_t shared_bytes = 0;  // per block
  int64_t max_threads = 1;   // per block
  std::array<int64_t, 3> max_block = {1, 1, 1};
  std::array<int64_t, 3> max_grid = {1, 1, 1};
  int64_t buffer_alignment = 1;
};

// Returns the name of a launch's kernel in printable ASCII, at most 128 characters.
std::string PrintableName(const GpuLaunch& launch);

// Returns InvalidArgument with the message "kernel 'NAME' WHY".
absl::Status RefuseLaunch(const GpuLaunch& launch, absl::string_view why);

// What the error of a device says that failed while it ran launches from `first` to `last`, which
// are names of kernels.
std::string DeviceFailedText(absl::string_view first, absl::string_view last);

// Checks a launch against the limits of the device. InvalidArgument: it exceeds one.
absl::Status CheckLaunch(const GpuLaunch& launch, const GpuContext& context);

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_GPU_CONTEXT_H_

#ifndef HONE_COMMON_TARGET_GPU_SEQUENCE_H_
#define HONE_COMMON_TARGET_GPU_SEQUENCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/target/gpu_context.h"

namespace hone::target {

// A copy from the host to the start of a buffer's data, and one back.
struct GpuUpload {
  GpuMemory* to = nullptr;
  int64_t bytes = 0;
  const void* from = nullptr;
};
struct GpuDownload {
  GpuMemory* from = nullptr;
  int64_t bytes = 0;
  void* to = nullptr;
};

// Commands that a device runs one after the other. They are recorded once and run any number of
// times, each time with one wait of the host. GpuContext::MakeSequence makes one. The context, the
// programs and the memory of the commands must outlive it. Single-threaded.
class GpuSequence {
 public:
  virtual ~GpuSequence() = default;

  // Begins a step, which has the commands that are added next. Run() tells the times of the steps.
  virtual void BeginStep() = 0;
  // Appends a launch of a program with its own parameters. InvalidArgument: the kernel refuses
  // them. REQUIRES: a step has begun.
  virtual absl::Status AddLaunch(GpuProgram& program, size_t launch,
                                 absl::Span<const GpuArgument> arguments) = 0;
  // Appends a copy between the first bytes of the data of two buffers, which do not overlap.
  // REQUIRES: a step has begun.
  virtual absl::Status AddCopy(const GpuMemory& from, GpuMemory& to, int64_t bytes) = 0;

  // Copies the uploads to the device, runs all commands, copies the downloads to the host, and
  // waits. If `step_ns` is not null, sets it to the time of each step on the device, in
  // nanoseconds; 0: the driver does not tell. The host then needs more time for each step.
  //
  // InvalidArgument: the driver refuses a launch. ResourceExhausted: the device ran out of memory.
  // Unavailable, Aborted: the device or a kernel failed.
  virtual absl::Status Run(absl::Span<const GpuUpload> uploads,
                           absl::Span<const GpuDownload> downloads,
                           std::vector<double>* step_ns) = 0;
};

}  // namespace hone::target

#endif  // HONE_COMMON_TARGET_GPU_SEQUENCE_H_

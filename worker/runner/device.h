#ifndef HONE_WORKER_RUNNER_DEVICE_H_
#define HONE_WORKER_RUNNER_DEVICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/error_bound.h"
#include "common/record/record.h"
#include "worker/runner/timing.h"

namespace hone::runner {

// A tensor in the memory of a device, between canaries.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  virtual int64_t bytes() const = 0;
  // Sets the content. `fill` writes all of it to the host memory that it is given.
  virtual absl::Status Write(absl::FunctionRef<void(void*)> fill) = 0;
  // Returns the content in host memory, valid until the next call with this buffer.
  virtual absl::StatusOr<const void*> Read() = 0;
  // Sets every bit. This is a NaN in each float type, so elements that a kernel leaves out are
  // found.
  virtual absl::Status Poison() = 0;
  // Returns the position of the nearest byte that was written outside, in bytes from the start of
  // the data: negative before it, ≥ bytes() behind it. nullopt if there is none. Restores the
  // canaries.
  virtual absl::StatusOr<std::optional<int64_t>> WrittenOutside() = 0;
};

// Describes a byte that was written outside `what`, which has this number of bytes: "the kernel
// writes outside of its workspace, at byte 64 of 64".
inline std::string DescribeWriteOutside(absl::string_view what, int64_t position, int64_t bytes) {
  return absl::StrFormat("the kernel writes outside of %s, at byte %d of %d", what, position,
                         bytes);
}

// The buffers of a kernel: inputs, then outputs, of the device that loaded the kernel.
using DeviceBuffers = absl::Span<DeviceBuffer* const>;

// A kernel with its packed constants and workspace. InvalidArgument of every call: the kernel
// refuses this machine or its buffers.
class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;
  // Returns the number of iterations of the loop that RunPart runs; 0 if there is no such loop.
  virtual int64_t parts() const = 0;
  // Packs the constants among the buffers.
  virtual absl::Status Prepack(DeviceBuffers buffers) = 0;
  // Sets every bit of the workspace.
  virtual absl::Status PoisonWorkspace() = 0;
  // Describes the nearest byte that the kernel wrote outside its workspace or its packed constants.
  // Returns "" if it wrote none. Restores the canaries.
  virtual absl::StatusOr<std::string> WrittenOutside() = 0;
  // Runs `count` times and returns the total nanoseconds. If `flushed`, the device's caches are
  // emptied before each run, which is not counted.
  virtual absl::StatusOr<double> Run(DeviceBuffers buffers, int64_t count, bool flushed) = 0;
  // Runs iterations [begin, end) of the last parallel loop on one thread. Returns nanoseconds.
  virtual absl::StatusOr<double> RunPart(DeviceBuffers buffers, int64_t begin, int64_t end) = 0;
};

// Loads and times kernels. Single-threaded. What every device must do is tested by
// tests/worker/runner/device_conformance_test.cc.
class Device {
 public:
  virtual ~Device() = default;
  // `placement` chooses the offset of the data within its first page. ResourceExhausted: out of
  // memory.
  virtual absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(int64_t bytes,
                                                                 uint64_t placement) = 0;
  // Loads the artifact `<folder>/<digest>`; `placement` is for the memory that it allocates itself.
  // One kernel may run at a time. NotFound / Internal: the file cannot be read. DataLoss: the
  // contents do not match the digest. InvalidArgument: not an artifact of this device.
  // FailedPrecondition: the loader refuses the code. ResourceExhausted: the kernel wants too much
  // memory.
  virtual absl::StatusOr<std::unique_ptr<DeviceKernel>> Load(const std::string& artifact_path,
                                                             uint64_t placement) = 0;
  // Prepares for timing with this number of threads; 0: as many as the device has.
  virtual absl::Status PrepareTiming(int threads, bool flushed) = 0;
  // The number of parts of a kernel that run at the same time.
  virtual int concurrency() const = 0;
  // Returns a probe that detects whether the device has become slower. As for CreateProbe.
  virtual absl::StatusOr<std::unique_ptr<Probe>> MakeProbe(double peak_gflops) = 0;
  // Overwrites what the device knows better than the host's monitor, such as the clock of a GPU.
  virtual void Observe(record::MachineState&) {}
  // The largest errors of the functions that its kernels call.
  virtual ir::ErrorOfOp error_of() const { return ir::RoundsOnce; }
  // The name of the device's own timing lock: its address on the PCI bus, or "gpu" if that is
  // unknown. "" if the device uses the host's cores or memory, so that a timing needs all of it.
  virtual std::string own_lock() const { return ""; }
  // Whether the device has failed in a way after which this process can no longer use it.
  virtual bool lost() const { return false; }
};

// This machine's CPU.
std::unique_ptr<Device> MakeCpuDevice();

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_DEVICE_H_

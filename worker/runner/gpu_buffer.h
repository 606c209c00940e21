#ifndef HONE_WORKER_RUNNER_GPU_BUFFER_H_
#define HONE_WORKER_RUNNER_GPU_BUFFER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "common/target/gpu_context.h"
#include "worker/runner/device.h"

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

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_GPU_BUFFER_H_

#ifndef HONE_WORKER_RUNNER_OPENCL_BUFFER_H_
#define HONE_WORKER_RUNNER_OPENCL_BUFFER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "worker/runner/device.h"
#include "worker/runner/opencl_context.h"

namespace hone::runner {

// A tensor in the memory of an OpenCL device: a part of an allocation that has a canary on each
// side. Writes further away are not detected; a GPU reports some of them as a fault.
class OpenClBuffer final : public DeviceBuffer {
 public:
  // `placement` chooses the offset within the first page. ResourceExhausted: more than the device
  // allows or has.
  static absl::StatusOr<std::unique_ptr<OpenClBuffer>> Create(OpenClContext& context, int64_t bytes,
                                                              uint64_t placement);

  int64_t bytes() const override { return bytes_; }
  absl::Status Write(absl::FunctionRef<void(void*)> fill) override;
  absl::StatusOr<const void*> Read() override;
  absl::Status Poison() override;
  absl::StatusOr<std::optional<int64_t>> WrittenOutside() override;

  // The argument of kernels.
  cl_mem data() const { return data_.get(); }

 private:
  OpenClBuffer(OpenClContext& context, int64_t bytes, int64_t offset)
      : context_(context),
        bytes_(bytes),
        offset_(offset),
        allocation_(nullptr, context.api().ReleaseMemObject),
        data_(nullptr, context.api().ReleaseMemObject) {}
  absl::Status FillCanaries();

  OpenClContext& context_;
  const int64_t bytes_;
  const int64_t offset_;  // of the data in the allocation
  ClOwned<cl_mem> allocation_;
  ClOwned<cl_mem> data_;
  std::unique_ptr<char[]> host_;  // what Read returned
};

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_OPENCL_BUFFER_H_

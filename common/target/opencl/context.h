#ifndef HONE_COMMON_TARGET_OPENCL_CONTEXT_H_
#define HONE_COMMON_TARGET_OPENCL_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/gpu_context.h"
#include "common/target/opencl/api.h"
#include "common/target/opencl/detect.h"

namespace hone::opencl {

// An object of OpenCL that is released with its owner.
template <typename T>
using ClOwned = std::unique_ptr<std::remove_pointer_t<T>, cl_int(CL_API_CALL*)(T)>;

// An OpenCL device with a queue on which all commands run in their order.
class OpenClContext final : public target::GpuContext {
 public:
  // Unavailable: the driver cannot use the device. `api` must outlive the context.
  static absl::StatusOr<std::unique_ptr<OpenClContext>> Create(const Api& api,
                                                               const DeviceFacts& facts);

  target::Kind kind() const override { return target::Kind::kOpenCl; }
  absl::StatusOr<std::unique_ptr<target::GpuMemory>> Allocate(int64_t bytes, int64_t data_at,
                                                              int64_t data_bytes) override;
  absl::StatusOr<std::unique_ptr<target::GpuProgram>> Load(const target::GpuModule& module,
                                                           absl::string_view what) override;
  bool lost() const override { return lost_; }

  const Api& api() const { return api_; }
  cl_device_id device() const { return device_; }
  cl_command_queue queue() const { return queue_.get(); }

  // Converts the code of a call, see ToStatus. After an error of the device itself, the
  // device counts as lost: a driver then often refuses everything else that this process does.
  absl::Status Check(cl_int code, absl::string_view what);
  // Waits until everything on the queue has ended.
  absl::Status Finish(absl::string_view what) { return Check(api_.Finish(queue()), what); }

 private:
  OpenClContext(const Api& api, cl_device_id device)
      : api_(api),
        device_(device),
        context_(nullptr, api.ReleaseContext),
        queue_(nullptr, api.ReleaseCommandQueue) {}

  // Builds a program for the device. FailedPrecondition: the driver refuses it; the message is the
  // build log. `what` names the program in messages.
  absl::StatusOr<ClOwned<cl_program>> Build(const std::string& source, absl::string_view what);

  const Api& api_;
  cl_device_id device_;
  ClOwned<cl_context> context_;
  ClOwned<cl_command_queue> queue_;
  bool lost_ = false;
};

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_CONTEXT_H_

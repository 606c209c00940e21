#ifndef HONE_WORKER_RUNNER_OPENCL_CONTEXT_H_
#define HONE_WORKER_RUNNER_OPENCL_CONTEXT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/opencl/api.h"
#include "common/target/opencl/detect.h"

namespace hone::runner {

// An object of OpenCL that is released with its owner.
template <typename T>
using ClOwned = std::unique_ptr<std::remove_pointer_t<T>, cl_int(CL_API_CALL*)(T)>;

// One device with a queue on which all commands run in their order, and what the device allows.
// Shared by its buffers and kernels, which it must outlive. Single-threaded.
class OpenClContext {
 public:
  // Unavailable: the driver cannot use the device. `api` must outlive the context.
  static absl::StatusOr<std::unique_ptr<OpenClContext>> Create(const opencl::Api& api,
                                                               const opencl::DeviceFacts& facts);

  const opencl::Api& api() const { return api_; }
  cl_device_id device() const { return device_; }
  cl_context context() const { return context_.get(); }
  cl_command_queue queue() const { return queue_.get(); }

  bool is_cpu = false;
  int units = 1;
  int64_t memory_bytes = 0;
  int64_t max_allocation_bytes = 0;
  int64_t cache_bytes = 0;
  int64_t shared_bytes = 0;
  int64_t max_threads = 1;
  std::array<size_t, 3> max_block = {1, 1, 1};
  int64_t buffer_alignment = 1;

  // Converts the code of a call, see opencl::ToStatus. After an error of the device itself, the
  // device counts as lost: a driver then often refuses everything else that this process does.
  absl::Status Check(cl_int code, absl::string_view what);
  // Waits until everything on the queue has ended.
  absl::Status Finish(absl::string_view what) { return Check(api_.Finish(queue()), what); }
  bool lost() const { return lost_; }

  // Builds a program for the device. FailedPrecondition: the driver refuses it; the message is the
  // build log. `what` names the program in messages.
  absl::StatusOr<ClOwned<cl_program>> Build(const std::string& source, absl::string_view what);
  // InvalidArgument: the program has no kernel of this name.
  absl::StatusOr<ClOwned<cl_kernel>> MakeKernel(cl_program program, const std::string& name);
  // Nanoseconds from the start of one command to the end of another, on the device's clock, or 0
  // if the driver does not tell.
  double Between(cl_event first, cl_event last) const;

 private:
  OpenClContext(const opencl::Api& api, cl_device_id device)
      : api_(api),
        device_(device),
        context_(nullptr, api.ReleaseContext),
        queue_(nullptr, api.ReleaseCommandQueue) {}

  const opencl::Api& api_;
  cl_device_id device_;
  ClOwned<cl_context> context_;
  ClOwned<cl_command_queue> queue_;
  bool lost_ = false;
};

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_OPENCL_CONTEXT_H_

#ifndef HONE_COMMON_TARGET_OPENCL_CONTEXT_H_
#define HONE_COMMON_TARGET_OPENCL_CONTEXT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/target/gpu_context.h"
#include "common/target/gpu_module.h"
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

// An allocation of OpenCL. The data are a sub-buffer.
class OpenClMemory final : public target::GpuMemory {
 public:
  OpenClMemory(OpenClContext& context, ClOwned<cl_mem> allocation, ClOwned<cl_mem> data)
      : context_(context), allocation_(std::move(allocation)), data_(std::move(data)) {}

  absl::Status Write(int64_t at, int64_t bytes, const void* from) override;
  absl::Status Read(int64_t at, int64_t bytes, void* to) override;
  absl::Status Fill(int64_t at, int64_t bytes, unsigned char value) override;
  cl_mem data() const { return data_.get(); }

 private:
  OpenClContext& context_;
  ClOwned<cl_mem> allocation_, data_;
};

// The kernels of a program that the driver has built. If the driver reports no times, or longer
// ones than the host measures, the host's are used, from the first submission to the end.
class OpenClProgram final : public target::GpuProgram {
 public:
  // InvalidArgument: a kernel is missing, has other parameters, or needs more registers or shared
  // memory than the device has.
  static absl::StatusOr<std::unique_ptr<OpenClProgram>> Create(OpenClContext& context,
                                                               ClOwned<cl_program> program,
                                                               const target::GpuModule& module);

  absl::Status SetArguments(size_t launch,
                            absl::Span<const target::GpuArgument> arguments) override;
  absl::StatusOr<double> Run(absl::Span<const size_t> launches, int64_t count) override;

 private:
  struct Launch {
    std::string name;  // of the kernel, printable
    ClOwned<cl_kernel> kernel;
    std::array<size_t, 3> global;  // threads in all
    std::array<size_t, 3> local;   // of a block
  };

  OpenClProgram(OpenClContext& context, ClOwned<cl_program> program)
      : context_(context), program_(std::move(program)) {}
  absl::Status AddLaunch(const target::GpuLaunch& launch, int arguments);

  OpenClContext& context_;
  ClOwned<cl_program> program_;
  std::vector<Launch> launches_;
};

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_CONTEXT_H_

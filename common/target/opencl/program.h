#ifndef HONE_COMMON_TARGET_OPENCL_PROGRAM_H_
#define HONE_COMMON_TARGET_OPENCL_PROGRAM_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/target/gpu_context.h"
#include "common/target/gpu_module.h"
#include "common/target/opencl/context.h"

namespace hone::opencl {

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

#endif  // HONE_COMMON_TARGET_OPENCL_PROGRAM_H_

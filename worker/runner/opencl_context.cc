#include "worker/runner/opencl_context.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/opencl/device_info.h"
#include "common/target/opencl/error.h"

namespace hone::runner {
namespace {

// The language that every driver knows. Fused multiply-adds and the like are up to the source.
constexpr char kBuildOptions[] = "-cl-std=CL1.2";
constexpr size_t kMaxLog = 4000;

}  // namespace

absl::StatusOr<std::unique_ptr<OpenClContext>> OpenClContext::Create(
    const opencl::Api& api, const opencl::DeviceFacts& facts) {
  auto made = std::unique_ptr<OpenClContext>(new OpenClContext(api, facts.device));
  const cl_device_id device = facts.device;
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(facts.platform), 0};
  cl_int code = CL_SUCCESS;
  made->context_.reset(api.CreateContext(properties, 1, &device, nullptr, nullptr, &code));
  HONE_RETURN_IF_ERROR(
      opencl::ToStatus(code, absl::StrCat("make an OpenCL context of ", facts.name)));
  made->queue_.reset(
      api.CreateCommandQueue(made->context(), device, CL_QUEUE_PROFILING_ENABLE, &code));
  HONE_RETURN_IF_ERROR(opencl::ToStatus(code, absl::StrCat("make a queue of ", facts.name)));

  const auto size = [&](cl_device_info property) {
    constexpr cl_ulong kMost = cl_ulong{1} << 60;
    return static_cast<int64_t>(
        std::min(opencl::DeviceValue<cl_ulong>(api, device, property, 0), kMost));
  };
  made->is_cpu = (facts.type & CL_DEVICE_TYPE_CPU) != 0;
  made->units = facts.target.cores;
  made->memory_bytes = size(CL_DEVICE_GLOBAL_MEM_SIZE);
  made->max_allocation_bytes = size(CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  made->cache_bytes = size(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  made->shared_bytes = size(CL_DEVICE_LOCAL_MEM_SIZE);
  made->max_threads = facts.target.gpu.max_threads;
  std::ranges::copy(opencl::MaxBlock(api, device), made->max_block.begin());
  // The driver tells it in bits.
  const auto bits = opencl::DeviceValue<cl_uint>(api, device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 0);
  constexpr int64_t kLeastAlignment = 64;
  made->buffer_alignment = std::max<int64_t>(bits / 8, kLeastAlignment);
  return made;
}

absl::Status OpenClContext::Check(cl_int code, absl::string_view what) {
  const absl::Status status = opencl::ToStatus(code, what);
  if (absl::IsUnavailable(status)) lost_ = true;
  return status;
}

absl::StatusOr<ClOwned<cl_program>> OpenClContext::Build(const std::string& source,
                                                         absl::string_view what) {
  const char* text = source.data();
  const size_t length = source.size();
  cl_int code = CL_SUCCESS;
  ClOwned<cl_program> program(api_.CreateProgramWithSource(context(), 1, &text, &length, &code),
                              api_.ReleaseProgram);
  HONE_RETURN_IF_ERROR(Check(code, absl::StrCat("load ", what)));
  code = api_.BuildProgram(program.get(), 1, &device_, kBuildOptions, nullptr, nullptr);
  if (code == CL_SUCCESS) return program;
  if (code != CL_BUILD_PROGRAM_FAILURE) {
    return absl::FailedPreconditionError(
        absl::StrCat("the driver cannot build ", what, ": ", opencl::ErrorName(code)));
  }
  size_t bytes = 0;
  api_.GetProgramBuildInfo(program.get(), device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string log(std::min<size_t>(bytes, 1 << 24), '\0');
  if (api_.GetProgramBuildInfo(program.get(), device_, CL_PROGRAM_BUILD_LOG, log.size(), log.data(),
                               nullptr) != CL_SUCCESS) {
    log.clear();
  }
  log = opencl::Printable(log, kMaxLog, /*lines=*/true);
  return absl::FailedPreconditionError(absl::StrCat("the driver refuses ", what, ":\n",
                                                    log.empty() ? "the build log is empty" : log));
}

absl::StatusOr<ClOwned<cl_kernel>> OpenClContext::MakeKernel(cl_program program,
                                                             const std::string& name) {
  cl_int code = CL_SUCCESS;
  ClOwned<cl_kernel> kernel(api_.CreateKernel(program, name.c_str(), &code), api_.ReleaseKernel);
  HONE_RETURN_IF_ERROR(
      Check(code, absl::StrCat("find kernel '", opencl::Printable(name, 128), "'")));
  return kernel;
}

double OpenClContext::Between(cl_event first, cl_event last) const {
  cl_ulong begin = 0, end = 0;
  if (api_.GetEventProfilingInfo(first, CL_PROFILING_COMMAND_START, sizeof(begin), &begin,
                                 nullptr) != CL_SUCCESS ||
      api_.GetEventProfilingInfo(last, CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr) !=
          CL_SUCCESS) {
    return 0;
  }
  return end > begin ? static_cast<double>(end - begin) : 0;
}

}  // namespace hone::runner

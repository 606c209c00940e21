#include "common/target/opencl/context.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/device_name.h"
#include "common/target/opencl/device_info.h"
#include "common/target/opencl/error.h"
#include "common/target/opencl/program.h"

namespace hone::opencl {
namespace {

// The version that every driver supports, except for what only OpenCL C 3.0 has: compilers need not
// declare functions of sub-groups in OpenCL C 1.2. No optimization options: the source asks for
// fused multiply-adds where it wants them.
const char* BuildOptions(absl::string_view source) {
  for (const char* function : {"dot_4x8packed", "sub_group_shuffle"}) {
    if (absl::StrContains(source, function)) return "-cl-std=CL3.0";
  }
  return "-cl-std=CL1.2";
}
constexpr size_t kMaxLog = 4000;

}  // namespace

absl::StatusOr<std::unique_ptr<OpenClContext>> OpenClContext::Create(const Api& api,
                                                                     const DeviceFacts& facts) {
  auto made = std::unique_ptr<OpenClContext>(new OpenClContext(api, facts.device));
  const cl_device_id device = facts.device;
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(facts.platform), 0};
  cl_int code = CL_SUCCESS;
  made->context_.reset(api.CreateContext(properties, 1, &device, nullptr, nullptr, &code));
  HONE_RETURN_IF_ERROR(ToStatus(code, absl::StrCat("make an OpenCL context of ", facts.name)));
  made->queue_.reset(
      api.CreateCommandQueue(made->context_.get(), device, CL_QUEUE_PROFILING_ENABLE, &code));
  HONE_RETURN_IF_ERROR(ToStatus(code, absl::StrCat("make a queue of ", facts.name)));

  const auto size = [&](cl_device_info property) {
    constexpr cl_ulong kMost = cl_ulong{1} << 60;
    return static_cast<int64_t>(std::min(DeviceValue<cl_ulong>(api, device, property, 0), kMost));
  };
  made->is_cpu = (facts.type & CL_DEVICE_TYPE_CPU) != 0;
  made->uses_host = made->is_cpu || DeviceValue<cl_bool>(api, device, CL_DEVICE_HOST_UNIFIED_MEMORY,
                                                         CL_FALSE) != CL_FALSE;
  made->bus_address = PciAddress(api, device);
  made->units = facts.target.cores;
  made->max_allocation_bytes = size(CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  made->cache_bytes = size(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  made->shared_bytes = size(CL_DEVICE_LOCAL_MEM_SIZE);
  made->max_threads = facts.target.gpu.max_threads;
  std::ranges::copy(MaxBlock(api, device), made->max_block.begin());
  made->max_grid.fill(std::numeric_limits<int64_t>::max());
  // The driver returns the alignment in bits.
  const auto bits = DeviceValue<cl_uint>(api, device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 0);
  constexpr int64_t kLeastAlignment = 64;
  made->buffer_alignment = std::max<int64_t>(bits / 8, kLeastAlignment);
  return made;
}

absl::Status OpenClContext::Check(cl_int code, absl::string_view what) {
  const absl::Status status = ToStatus(code, what);
  if (absl::IsUnavailable(status)) lost_ = true;
  return status;
}

absl::StatusOr<ClOwned<cl_program>> OpenClContext::Build(const std::string& source,
                                                         absl::string_view what) {
  const char* text = source.data();
  const size_t length = source.size();
  cl_int code = CL_SUCCESS;
  ClOwned<cl_program> program(
      api_.CreateProgramWithSource(context_.get(), 1, &text, &length, &code), api_.ReleaseProgram);
  HONE_RETURN_IF_ERROR(Check(code, absl::StrCat("load ", what)));
  code = api_.BuildProgram(program.get(), 1, &device_, BuildOptions(source), nullptr, nullptr);
  if (code == CL_SUCCESS) return program;
  if (code != CL_BUILD_PROGRAM_FAILURE) {
    return absl::FailedPreconditionError(
        absl::StrCat("the driver cannot build ", what, ": ", ErrorName(code)));
  }
  size_t bytes = 0;
  api_.GetProgramBuildInfo(program.get(), device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string log(std::min<size_t>(bytes, 1 << 24), '\0');
  if (api_.GetProgramBuildInfo(program.get(), device_, CL_PROGRAM_BUILD_LOG, log.size(), log.data(),
                               nullptr) != CL_SUCCESS) {
    log.clear();
  }
  log = target::Printable(log, kMaxLog, /*lines=*/true);
  return absl::FailedPreconditionError(absl::StrCat("the driver refuses ", what, ":\n",
                                                    log.empty() ? "the build log is empty" : log));
}

absl::StatusOr<std::unique_ptr<target::GpuProgram>> OpenClContext::Load(
    const target::GpuModule& module, absl::string_view what) {
  HONE_ASSIGN_OR_RETURN(ClOwned<cl_program> program, Build(module.code, what));
  return OpenClProgram::Create(*this, std::move(program), module);
}

absl::StatusOr<std::unique_ptr<target::GpuMemory>> OpenClContext::Allocate(int64_t bytes,
                                                                           int64_t data_at,
                                                                           int64_t data_bytes) {
  // Drivers report in several ways that a device is out of memory.
  cl_int code = CL_SUCCESS;
  ClOwned<cl_mem> allocation(api_.CreateBuffer(context_.get(), CL_MEM_READ_WRITE,
                                               static_cast<size_t>(bytes), nullptr, &code),
                             api_.ReleaseMemObject);
  if (code != CL_SUCCESS) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory on the device for a buffer of ",
                                                     data_bytes, " bytes (code ", code, ")"));
  }
  const cl_buffer_region region = {static_cast<size_t>(data_at), static_cast<size_t>(data_bytes)};
  ClOwned<cl_mem> data(api_.CreateSubBuffer(allocation.get(), CL_MEM_READ_WRITE,
                                            CL_BUFFER_CREATE_TYPE_REGION, &region, &code),
                       api_.ReleaseMemObject);
  HONE_RETURN_IF_ERROR(Check(code, "place a buffer"));
  return std::make_unique<OpenClMemory>(*this, std::move(allocation), std::move(data));
}

}  // namespace hone::opencl

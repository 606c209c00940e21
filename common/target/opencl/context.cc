#include "common/target/opencl/context.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/target/device_name.h"
#include "common/target/gpu_context.h"
#include "common/target/opencl/device_info.h"
#include "common/target/opencl/error.h"

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

// Returns the nanoseconds from the start of one command to the end of another, on the device's
// clock; 0 if the driver does not report them.
double Between(const Api& api, cl_event first, cl_event last) {
  cl_ulong begin = 0, end = 0;
  if (api.GetEventProfilingInfo(first, CL_PROFILING_COMMAND_START, sizeof(begin), &begin,
                                nullptr) != CL_SUCCESS ||
      api.GetEventProfilingInfo(last, CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr) !=
          CL_SUCCESS) {
    return 0;
  }
  return end > begin ? static_cast<double>(end - begin) : 0;
}

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

absl::Status OpenClMemory::Write(int64_t at, int64_t bytes, const void* from) {
  return context_.Check(context_.api().EnqueueWriteBuffer(
                            context_.queue(), allocation_.get(), CL_TRUE, static_cast<size_t>(at),
                            static_cast<size_t>(bytes), from, 0, nullptr, nullptr),
                        "write a buffer");
}

absl::Status OpenClMemory::Read(int64_t at, int64_t bytes, void* to) {
  return context_.Check(context_.api().EnqueueReadBuffer(
                            context_.queue(), allocation_.get(), CL_TRUE, static_cast<size_t>(at),
                            static_cast<size_t>(bytes), to, 0, nullptr, nullptr),
                        "read a buffer");
}

absl::Status OpenClMemory::Fill(int64_t at, int64_t bytes, unsigned char value) {
  HONE_RETURN_IF_ERROR(context_.Check(
      context_.api().EnqueueFillBuffer(context_.queue(), allocation_.get(), &value, sizeof(value),
                                       static_cast<size_t>(at), static_cast<size_t>(bytes), 0,
                                       nullptr, nullptr),
      "fill a buffer"));
  return context_.Finish("fill a buffer");
}

absl::StatusOr<std::unique_ptr<OpenClProgram>> OpenClProgram::Create(
    OpenClContext& context, ClOwned<cl_program> program, const target::GpuModule& module) {
  auto created = std::unique_ptr<OpenClProgram>(new OpenClProgram(context, std::move(program)));
  for (const target::GpuLaunch& launch : module.launches) {
    HONE_RETURN_IF_ERROR(created->AddLaunch(launch, module.arguments));
  }
  return created;
}

absl::Status OpenClProgram::AddLaunch(const target::GpuLaunch& launch, int arguments) {
  const Api& api = context_.api();
  const std::string name = target::PrintableName(launch);
  cl_int code = CL_SUCCESS;
  ClOwned<cl_kernel> kernel(api.CreateKernel(program_.get(), launch.kernel.c_str(), &code),
                            api.ReleaseKernel);
  HONE_RETURN_IF_ERROR(context_.Check(code, absl::StrCat("find kernel '", name, "'")));
  cl_uint parameters = 0;
  HONE_RETURN_IF_ERROR(context_.Check(
      api.GetKernelInfo(kernel.get(), CL_KERNEL_NUM_ARGS, sizeof(parameters), &parameters, nullptr),
      "count the parameters of a kernel"));
  const auto expected = static_cast<cl_uint>(arguments + 2);
  if (parameters != expected) {
    return target::RefuseLaunch(
        launch, absl::StrCat("has ", parameters, " parameters instead of ", expected,
                             ", which are inputs and outputs, constants, workspace"));
  }
  const auto ask = [&](cl_kernel_work_group_info property, auto& value) {
    return api.GetKernelWorkGroupInfo(kernel.get(), context_.device(), property, sizeof(value),
                                      &value, nullptr) == CL_SUCCESS;
  };
  size_t most = 0;
  if (ask(CL_KERNEL_WORK_GROUP_SIZE, most) && launch.Threads() > static_cast<int64_t>(most)) {
    return target::RefuseLaunch(
        launch, absl::StrCat("has blocks of ", launch.Threads(),
                             " threads, but the device has registers for only ", most));
  }
  cl_ulong shared = 0;
  if (ask(CL_KERNEL_LOCAL_MEM_SIZE, shared) &&
      shared > static_cast<cl_ulong>(context_.shared_bytes)) {
    return target::RefuseLaunch(
        launch, absl::StrCat("uses ", shared, " bytes of shared memory; the device has ",
                             context_.shared_bytes));
  }
  Launch& added = launches_.emplace_back(Launch{.name = name, .kernel = std::move(kernel)});
  for (size_t d = 0; d < launch.block.size(); ++d) {
    added.local[d] = static_cast<size_t>(launch.block[d]);
    added.global[d] = static_cast<size_t>(launch.grid[d] * launch.block[d]);
  }
  return absl::OkStatus();
}

absl::Status OpenClProgram::SetArguments(size_t launch,
                                         absl::Span<const target::GpuArgument> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    cl_mem memory = nullptr;
    size_t bytes = sizeof(memory);
    const void* value = nullptr;
    if (const auto* const number = std::get_if<int32_t>(&arguments[i])) {
      bytes = sizeof(*number);
      value = number;
    } else if (const auto* const data = static_cast<const OpenClMemory*>(
                   std::get<const target::GpuMemory*>(arguments[i]))) {
      memory = data->data();
      value = &memory;
    }
    HONE_RETURN_IF_ERROR(context_.Check(
        context_.api().SetKernelArg(launches_[launch].kernel.get(), static_cast<cl_uint>(i), bytes,
                                    value),
        absl::StrCat("set parameter ", i, " of kernel '", launches_[launch].name, "'")));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> OpenClProgram::Run(absl::Span<const size_t> launches, int64_t count) {
  const Api& api = context_.api();
  ClOwned<cl_event> first(nullptr, api.ReleaseEvent), last(nullptr, api.ReleaseEvent);
  const absl::Time begin = SteadyClock().Now();
  for (int64_t i = 0; i < count; ++i) {
    for (const size_t& index : launches) {
      const Launch& launch = launches_[index];
      const bool is_first = i == 0 && &index == &launches.front();
      const bool is_last = i == count - 1 && &index == &launches.back();
      cl_event event = nullptr;
      HONE_RETURN_IF_ERROR(
          context_.Check(api.EnqueueNDRangeKernel(context_.queue(), launch.kernel.get(), 3, nullptr,
                                                  launch.global.data(), launch.local.data(), 0,
                                                  nullptr, is_first || is_last ? &event : nullptr),
                         absl::StrCat("launch kernel '", launch.name, "'")));
      if (event != nullptr) (is_first ? first : last).reset(event);
    }
  }
  const std::string failed =
      target::DeviceFailedText(launches_[launches.front()].name, launches_[launches.back()].name);
  const absl::Status finished = context_.Finish(failed);
  const double host_ns = absl::ToDoubleNanoseconds(SteadyClock().Now() - begin);
  HONE_RETURN_IF_ERROR(finished);
  const cl_event end = last == nullptr ? first.get() : last.get();
  cl_int state = CL_COMPLETE;
  api.GetEventInfo(end, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, nullptr);
  if (state < 0) {
    HONE_RETURN_IF_ERROR(context_.Check(state, failed));
  }
  const double device_ns = Between(api, first.get(), end);
  return device_ns > 0 && device_ns <= host_ns ? device_ns : host_ns;
}

}  // namespace hone::opencl

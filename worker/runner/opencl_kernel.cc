#include "worker/runner/opencl_kernel.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/target/opencl/error.h"
#include "worker/runner/reference_loops.h"

namespace hone::runner {
namespace {

using target::GpuLaunch;
using target::GpuModule;

constexpr size_t kMaxName = 128;

absl::Status Refuse(const GpuLaunch& launch, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("kernel '", opencl::Printable(launch.kernel, kMaxName), "' ", why));
}

// What the device as a whole allows.
absl::Status CheckLimits(const GpuLaunch& launch, const OpenClContext& context) {
  if (launch.Threads() > context.max_threads) {
    return Refuse(launch, absl::StrCat("has blocks of ", launch.Threads(),
                                       " threads; the device allows ", context.max_threads));
  }
  for (size_t d = 0; d < launch.block.size(); ++d) {
    if (launch.block[d] > static_cast<int64_t>(context.max_block[d])) {
      return Refuse(launch, absl::StrCat("has blocks of ", absl::StrJoin(launch.block, " × "),
                                         " threads; the device allows ",
                                         absl::StrJoin(context.max_block, " × ")));
    }
    // Some drivers count the threads of a dimension with 32 bits.
    if (launch.grid[d] * launch.block[d] > std::numeric_limits<uint32_t>::max()) {
      return Refuse(launch, absl::StrCat("has ", launch.grid[d], " blocks of ", launch.block[d],
                                         " threads in dimension ", d, "; 2^32 is too many"));
    }
  }
  if (launch.shared_bytes > context.shared_bytes) {
    return Refuse(launch,
                  absl::StrCat("uses ", launch.shared_bytes,
                               " bytes of shared memory; the device has ", context.shared_bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OpenClBuffer>> AllocateFor(OpenClContext& context,
                                                          absl::string_view what, int64_t bytes,
                                                          uint64_t placement) {
  if (bytes == 0) return nullptr;
  auto buffer = OpenClBuffer::Create(context, bytes, placement);
  if (buffer.ok()) return buffer;
  return absl::Status(buffer.status().code(), absl::StrCat("the kernel wants ", bytes, " bytes of ",
                                                           what, ": ", buffer.status().message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<OpenClKernel>> OpenClKernel::Load(
    OpenClContext& context, const GpuModule& module, uint64_t placement,
    std::function<absl::Status()> flush_caches) {
  if (module.kind != target::Kind::kOpenCl) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the artifact is for ", target::KindName(module.kind), ", but this device is of OpenCL"));
  }
  bool computes = false;
  for (const GpuLaunch& launch : module.launches) {
    HONE_RETURN_IF_ERROR(CheckLimits(launch, context));
    computes = computes || !launch.prepack;
  }
  if (!computes) return absl::InvalidArgumentError("the module only packs constants");
  auto kernel = std::unique_ptr<OpenClKernel>(new OpenClKernel(context));
  kernel->flush_caches_ = std::move(flush_caches);
  kernel->arguments_ = static_cast<size_t>(module.arguments);
  HONE_ASSIGN_OR_RETURN(kernel->program_, context.Build(module.code, "the kernel's source"));
  for (const GpuLaunch& launch : module.launches) {
    HONE_RETURN_IF_ERROR(kernel->AddLaunch(launch));
  }
  Rng offsets(placement);
  HONE_ASSIGN_OR_RETURN(kernel->workspace_,
                        AllocateFor(context, "workspace", module.workspace_bytes, offsets()));
  HONE_ASSIGN_OR_RETURN(kernel->packed_,
                        AllocateFor(context, "packed constants", module.packed_bytes, offsets()));
  return kernel;
}

absl::Status OpenClKernel::AddLaunch(const GpuLaunch& launch) {
  const opencl::Api& api = context_.api();
  HONE_ASSIGN_OR_RETURN(ClOwned<cl_kernel> kernel,
                        context_.MakeKernel(program_.get(), launch.kernel));
  cl_uint parameters = 0;
  HONE_RETURN_IF_ERROR(context_.Check(
      api.GetKernelInfo(kernel.get(), CL_KERNEL_NUM_ARGS, sizeof(parameters), &parameters, nullptr),
      "count the parameters of a kernel"));
  const size_t expected = arguments_ + 2;
  if (parameters != expected) {
    return Refuse(launch, absl::StrCat("has ", parameters, " parameters instead of ", expected,
                                       ", which are inputs and outputs, constants, workspace"));
  }
  const auto ask = [&](cl_kernel_work_group_info property, auto& value) {
    return api.GetKernelWorkGroupInfo(kernel.get(), context_.device(), property, sizeof(value),
                                      &value, nullptr) == CL_SUCCESS;
  };
  size_t most = 0;
  if (ask(CL_KERNEL_WORK_GROUP_SIZE, most) && launch.Threads() > static_cast<int64_t>(most)) {
    return Refuse(launch, absl::StrCat("has blocks of ", launch.Threads(),
                                       " threads, but the device has registers for only ", most));
  }
  cl_ulong shared = 0;
  if (ask(CL_KERNEL_LOCAL_MEM_SIZE, shared) &&
      shared > static_cast<cl_ulong>(context_.shared_bytes)) {
    return Refuse(launch, absl::StrCat("uses ", shared, " bytes of shared memory; the device has ",
                                       context_.shared_bytes));
  }
  Launch& added = launches_.emplace_back(Launch{.name = opencl::Printable(launch.kernel, kMaxName),
                                                .prepack = launch.prepack,
                                                .kernel = std::move(kernel)});
  for (size_t d = 0; d < launch.block.size(); ++d) {
    added.local[d] = static_cast<size_t>(launch.block[d]);
    added.global[d] = static_cast<size_t>(launch.grid[d] * launch.block[d]);
  }
  return absl::OkStatus();
}

absl::Status OpenClKernel::SetArguments(DeviceBuffers buffers, bool prepack) {
  if (buffers.size() != arguments_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the kernel has ", arguments_, " inputs and outputs, the workload ", buffers.size()));
  }
  std::vector<cl_mem> arguments;
  for (const DeviceBuffer* const buffer : buffers) {
    arguments.push_back(static_cast<const OpenClBuffer*>(buffer)->data());
  }
  arguments.push_back(packed_ == nullptr ? nullptr : packed_->data());
  arguments.push_back(workspace_ == nullptr ? nullptr : workspace_->data());
  for (const Launch& launch : launches_) {
    if (launch.prepack != prepack) continue;
    for (size_t i = 0; i < arguments.size(); ++i) {
      HONE_RETURN_IF_ERROR(context_.Check(
          context_.api().SetKernelArg(launch.kernel.get(), static_cast<cl_uint>(i), sizeof(cl_mem),
                                      arguments[i] == nullptr ? nullptr : &arguments[i]),
          absl::StrCat("set parameter ", i, " of kernel '", launch.name, "'")));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> OpenClKernel::RunSequence(bool prepack, int64_t count) {
  const opencl::Api& api = context_.api();
  std::vector<const Launch*> sequence;
  for (const Launch& launch : launches_) {
    if (launch.prepack == prepack) sequence.push_back(&launch);
  }
  if (sequence.empty()) return 0;
  ClOwned<cl_event> first(nullptr, api.ReleaseEvent), last(nullptr, api.ReleaseEvent);
  const double begin = NowNs();
  for (int64_t i = 0; i < count; ++i) {
    for (const Launch* const launch : sequence) {
      const bool is_first = i == 0 && launch == sequence.front();
      const bool is_last = i == count - 1 && launch == sequence.back();
      cl_event event = nullptr;
      HONE_RETURN_IF_ERROR(context_.Check(
          api.EnqueueNDRangeKernel(context_.queue(), launch->kernel.get(), 3, nullptr,
                                   launch->global.data(), launch->local.data(), 0, nullptr,
                                   is_first || is_last ? &event : nullptr),
          absl::StrCat("launch kernel '", launch->name, "'")));
      (is_first ? first : last).reset(event);
    }
  }
  const absl::Status finished = context_.Finish(
      absl::StrCat("the device failed while it ran kernel '", sequence.front()->name, "'"));
  const double host_ns = NowNs() - begin;
  HONE_RETURN_IF_ERROR(finished);
  const cl_event end = last == nullptr ? first.get() : last.get();
  cl_int state = CL_COMPLETE;
  api.GetEventInfo(end, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, nullptr);
  if (state < 0) {
    HONE_RETURN_IF_ERROR(context_.Check(
        state,
        absl::StrCat("the device failed while it ran kernel '", sequence.back()->name, "'")));
  }
  const double device_ns = context_.Between(first.get(), end);
  return device_ns > 0 && device_ns <= host_ns ? device_ns : host_ns;
}

absl::Status OpenClKernel::Prepack(DeviceBuffers buffers) {
  HONE_RETURN_IF_ERROR(SetArguments(buffers, /*prepack=*/true));
  return RunSequence(/*prepack=*/true, 1).status();
}

absl::Status OpenClKernel::PoisonWorkspace() {
  return workspace_ == nullptr ? absl::OkStatus() : workspace_->Poison();
}

absl::StatusOr<double> OpenClKernel::Run(DeviceBuffers buffers, int64_t count, bool flushed) {
  HONE_RETURN_IF_ERROR(SetArguments(buffers, /*prepack=*/false));
  if (!flushed) return RunSequence(/*prepack=*/false, count);
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    HONE_RETURN_IF_ERROR(flush_caches_());
    HONE_ASSIGN_OR_RETURN(const double ns, RunSequence(/*prepack=*/false, 1));
    total += ns;
  }
  return total;
}

absl::StatusOr<double> OpenClKernel::RunPart(DeviceBuffers, int64_t, int64_t) {
  return absl::UnimplementedError("kernels of OpenCL run as a whole");
}

}  // namespace hone::runner

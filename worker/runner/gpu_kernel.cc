#include "worker/runner/gpu_kernel.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/target/gpu_launch.h"

namespace hone::runner {
namespace {

using target::GpuLaunch;
using target::GpuModule;

absl::StatusOr<std::unique_ptr<GpuBuffer>> AllocateFor(target::GpuContext& context,
                                                       absl::string_view what, int64_t bytes,
                                                       uint64_t placement) {
  if (bytes == 0) return nullptr;
  auto buffer = GpuBuffer::Create(context, bytes, placement);
  if (buffer.ok()) return buffer;
  return absl::Status(buffer.status().code(), absl::StrCat("the kernel needs ", bytes, " bytes of ",
                                                           what, ": ", buffer.status().message()));
}

}  // namespace

GpuKernel::GpuKernel(const GpuModule& module, std::unique_ptr<target::GpuProgram> program,
                     std::function<absl::Status()> flush_caches)
    : arguments_(static_cast<size_t>(module.arguments)),
      program_(std::move(program)),
      flush_caches_(std::move(flush_caches)) {
  for (size_t i = 0; i < module.launches.size(); ++i) {
    (module.launches[i].prepack ? prepack_ : run_).push_back(i);
  }
}

absl::StatusOr<std::unique_ptr<GpuKernel>> GpuKernel::Load(
    target::GpuContext& context, const GpuModule& module, uint64_t placement,
    std::function<absl::Status()> flush_caches) {
  if (module.kind != context.kind()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the artifact is for ", target::KindName(module.kind),
                     ", but this device uses ", target::KindName(context.kind())));
  }
  bool computes = false;
  for (const GpuLaunch& launch : module.launches) {
    HONE_RETURN_IF_ERROR(target::CheckLaunch(launch, context));
    computes = computes || !launch.prepack;
  }
  if (!computes) return absl::InvalidArgumentError("the module only packs constants");
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<target::GpuProgram> program,
                        context.Load(module, "the kernel's code"));
  auto kernel = std::unique_ptr<GpuKernel>(
      new GpuKernel(module, std::move(program), std::move(flush_caches)));
  Rng offsets(placement);
  HONE_ASSIGN_OR_RETURN(kernel->workspace_,
                        AllocateFor(context, "workspace", module.workspace_bytes, offsets()));
  HONE_ASSIGN_OR_RETURN(kernel->packed_,
                        AllocateFor(context, "packed constants", module.packed_bytes, offsets()));
  return kernel;
}

absl::Status GpuKernel::SetArguments(DeviceBuffers buffers, const std::vector<size_t>& launches) {
  if (buffers.size() != arguments_) {
    return absl::InvalidArgumentError(absl::StrCat("the kernel has ", arguments_,
                                                   " inputs and outputs, but the workload has ",
                                                   buffers.size()));
  }
  std::vector<target::GpuArgument> arguments;
  for (const DeviceBuffer* const buffer : buffers) {
    arguments.emplace_back(static_cast<const GpuBuffer*>(buffer)->memory());
  }
  for (const auto* const own : {&packed_, &workspace_}) {
    arguments.emplace_back(*own == nullptr ? nullptr : (*own)->memory());
  }
  for (const size_t launch : launches) {
    HONE_RETURN_IF_ERROR(program_->SetArguments(launch, arguments));
  }
  return absl::OkStatus();
}

absl::Status GpuKernel::Prepack(DeviceBuffers buffers) {
  HONE_RETURN_IF_ERROR(SetArguments(buffers, prepack_));
  return prepack_.empty() ? absl::OkStatus() : program_->Run(prepack_, 1).status();
}

absl::Status GpuKernel::PoisonWorkspace() {
  return workspace_ == nullptr ? absl::OkStatus() : workspace_->Poison();
}

absl::StatusOr<std::string> GpuKernel::WrittenOutside() {
  const struct {
    const char* name;
    GpuBuffer* memory;
  } own[] = {{"its workspace", workspace_.get()}, {"its packed constants", packed_.get()}};
  for (const auto& each : own) {
    if (each.memory == nullptr) continue;
    HONE_ASSIGN_OR_RETURN(const std::optional<int64_t> outside, each.memory->WrittenOutside());
    if (outside) return DescribeWriteOutside(each.name, *outside, each.memory->bytes());
  }
  return std::string();
}

absl::StatusOr<double> GpuKernel::Run(DeviceBuffers buffers, int64_t count, bool flushed) {
  HONE_RETURN_IF_ERROR(SetArguments(buffers, run_));
  if (!flushed) return program_->Run(run_, count);
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    HONE_RETURN_IF_ERROR(flush_caches_());
    HONE_ASSIGN_OR_RETURN(const double ns, program_->Run(run_, 1));
    total += ns;
  }
  return total;
}

absl::StatusOr<double> GpuKernel::RunPart(DeviceBuffers, int64_t, int64_t) {
  return absl::UnimplementedError("a GPU kernel can only be run as a whole");
}

}  // namespace hone::runner

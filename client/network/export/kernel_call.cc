#include "client/network/export/kernel_call.h"

#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/gpu_module.h"
#include "common/target/kernel_memory.h"
#include "common/target/loaded_kernel.h"
#include "common/target/module_call.h"
#include "common/target/open_gpu.h"
#include "common/target/target.h"

namespace hone::client {
namespace {

absl::Status CheckInputs(const ir::Workload& workload, absl::Span<const absl::string_view> inputs) {
  const std::vector<ir::BufferId> in = workload.Inputs();
  if (inputs.size() != in.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(workload.name, " takes ", in.size(), " inputs, not ", inputs.size()));
  }
  for (size_t i = 0; i < in.size(); ++i) {
    const ir::Tensor& tensor = workload.tensors[in[i]];
    if (static_cast<int64_t>(inputs[i].size()) != tensor.bytes()) {
      return absl::InvalidArgumentError(
          absl::StrCat(tensor.name, " has ", tensor.bytes(), " bytes, not ", inputs[i].size()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> CallGpu(const ir::Workload& workload,
                                                 const record::Artifact& artifact,
                                                 const target::Target& target,
                                                 absl::Span<const absl::string_view> inputs,
                                                 absl::string_view device) {
  HONE_ASSIGN_OR_RETURN(const target::GpuModule module,
                        target::GpuModule::Decode(artifact.shared_object));
  std::vector<int64_t> output_bytes;
  for (const ir::BufferId id : workload.Outputs()) {
    output_bytes.push_back(workload.tensors[id].bytes());
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<target::GpuContext> gpu,
                        target::OpenGpuFor(target, device));
  return target::CallModule(*gpu, module, inputs, output_bytes);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CallKernel(const ir::Workload& workload,
                                                    const record::Artifact& artifact,
                                                    absl::Span<const absl::string_view> inputs,
                                                    absl::string_view device) {
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::Target::FromText(artifact.target));
  HONE_RETURN_IF_ERROR(CheckInputs(workload, inputs));
  if (target.kind != target::Kind::kCpu) return CallGpu(workload, artifact, target, inputs, device);
  HONE_RETURN_IF_ERROR(target::CheckRunsOn(target, target::DetectHost()));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<target::LoadedKernel> kernel,
                        target::LoadedKernel::LoadSharedObject(artifact.shared_object));

  const std::vector<ir::BufferId> in = workload.Inputs(), out = workload.Outputs();
  std::vector<target::KernelMemory> owned;
  std::vector<void*> buffers;
  const auto add = [&](int64_t bytes) -> absl::Status {
    buffers.push_back(owned.emplace_back(target::AllocateKernelMemory(bytes)).get());
    if (buffers.back() != nullptr) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("out of memory for a buffer of ", bytes, " bytes"));
  };
  for (size_t i = 0; i < in.size(); ++i) {
    HONE_RETURN_IF_ERROR(add(workload.tensors[in[i]].bytes()));
    std::memcpy(buffers.back(), inputs[i].data(), inputs[i].size());
  }
  for (const ir::BufferId id : out) {
    HONE_RETURN_IF_ERROR(add(workload.tensors[id].bytes()));
    // Fill the output with NaN, so that elements that the kernel does not write are noticed.
    std::memset(buffers.back(), 0xff, workload.tensors[id].bytes());
  }
  HONE_RETURN_IF_ERROR(kernel->Call(buffers.data()));
  std::vector<std::string> outputs;
  for (size_t o = 0; o < out.size(); ++o) {
    outputs.emplace_back(static_cast<const char*>(buffers[in.size() + o]),
                         workload.tensors[out[o]].bytes());
  }
  return outputs;
}

}  // namespace hone::client

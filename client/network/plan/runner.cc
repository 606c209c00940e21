#include "client/network/plan/runner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/plan/cpu_runner.h"
#include "client/network/plan/gpu_runner.h"
#include "common/base/status_macros.h"
#include "common/target/open_gpu.h"

namespace hone::network {
namespace {

std::vector<graph::TensorType> TypesOf(const graph::Graph& graph,
                                       const std::vector<graph::ValueId>& values) {
  std::vector<graph::TensorType> types;
  for (const graph::ValueId id : values) types.push_back(graph.value(id).type);
  return types;
}

}  // namespace

Runner::Runner(const graph::Graph& graph)
    : input_types_(TypesOf(graph, graph.inputs)), output_types_(TypesOf(graph, graph.outputs)) {}

absl::StatusOr<std::unique_ptr<Runner>> Runner::Create(const graph::Graph& graph,
                                                       const graph::Partition& partition,
                                                       absl::Span<const NetworkKernel> kernels,
                                                       const RunnerOptions& options) {
  for (const NetworkKernel& kernel : kernels) {
    if (kernel.target == kernels[0].target) continue;
    // Code for another model of a CPU may run here; LoadKernel has checked that.
    if (kernel.module == nullptr && kernels[0].module == nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the network has kernels for ", kernels[0].target.Key(), " and for ",
                     kernel.target.Key(), "; all must be for one device"));
  }
  if (kernels.empty() || kernels[0].module == nullptr) {
    return CpuRunner::Create(graph, partition, kernels, options.threads);
  }
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<target::GpuContext> gpu,
                        target::OpenGpuFor(kernels[0].target, options.device));
  return GpuRunner::Create(std::move(gpu), graph, partition, kernels);
}

absl::StatusOr<std::vector<std::string>> Runner::Run(absl::Span<const absl::string_view> inputs,
                                                     std::vector<StepTime>* times) {
  if (inputs.size() != input_types_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the network has ", input_types_.size(), " inputs, not ", inputs.size()));
  }
  std::vector<const void*> in;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (static_cast<int64_t>(inputs[i].size()) != input_types_[i].bytes()) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has ", input_types_[i].bytes(),
                                                     " bytes, not ", inputs[i].size()));
    }
    in.push_back(inputs[i].data());
  }
  std::vector<std::string> outputs;
  std::vector<void*> out;
  for (const graph::TensorType& type : output_types_) outputs.emplace_back(type.bytes(), '\0');
  for (std::string& output : outputs) out.push_back(output.data());
  if (times != nullptr) times->clear();
  HONE_RETURN_IF_ERROR(RunOn(in, out, times));
  return outputs;
}

}  // namespace hone::network

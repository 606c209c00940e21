#include "client/network/plan/runner.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "client/network/plan/plan.h"
#include "client/network/plan/weights_file.h"
#include "client/network/runtime/hone_program.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_library.h"
#include "common/target/open_gpu.h"

namespace hone::network {
namespace {

std::vector<graph::TensorType> TypesOf(const graph::Graph& graph,
                                       const std::vector<graph::ValueId>& values) {
  std::vector<graph::TensorType> types;
  for (const graph::ValueId id : values) types.push_back(graph.value(id).type);
  return types;
}

absl::Status ToStatus(hone_network_status status) {
  switch (status) {
    case HONE_NETWORK_OK:
      return absl::OkStatus();
    case HONE_NETWORK_INVALID_ARGUMENT:
      return absl::InvalidArgumentError(hone_network_error());
    case HONE_NETWORK_UNSUPPORTED_CPU:
      return absl::FailedPreconditionError(hone_network_error());
    case HONE_NETWORK_OUT_OF_MEMORY:
      return absl::ResourceExhaustedError(hone_network_error());
    case HONE_NETWORK_DEVICE:
      return absl::UnavailableError(hone_network_error());
    default:
      return absl::InternalError(hone_network_error());
  }
}

const HoneBackend* BackendOf(absl::Span<const NetworkKernel> kernels) {
  if (kernels.empty() || kernels[0].module == nullptr) return &hone_cpu_backend;
  return kernels[0].module->kind == target::Kind::kCuda ? &hone_cuda_backend : &hone_opencl_backend;
}

}  // namespace

struct Runner::State {
  std::vector<std::shared_ptr<const target::LoadedKernel>> loaded;
  std::vector<hone_network_kernel> kernels;
  std::string plan;
  hone_network_program program = {};
  HoneRuntime runtime = {};
  hone_network* network = nullptr;
  hone_network_instance* instance = nullptr;

  ~State() {
    hone_network_free_instance(instance);
    hone_network_close(network);
  }
};

Runner::Runner(const graph::Graph& graph, std::unique_ptr<State> state)
    : input_types_(TypesOf(graph, graph.inputs)),
      output_types_(TypesOf(graph, graph.outputs)),
      state_(std::move(state)) {}
Runner::~Runner() = default;

bool Runner::times_steps_freely() const { return state_->program.backend == &hone_cpu_backend; }
int Runner::threads() const { return times_steps_freely() ? state_->runtime.threads : 0; }

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
  HONE_ASSIGN_OR_RETURN(PlannedNetwork planned, MakePlan(graph, partition, kernels));
  int device = 0;
  if (planned.plan.is_gpu) {
    HONE_ASSIGN_OR_RETURN(device, target::GpuNumberFor(kernels[0].target, options.device));
  }
  const int weights = memfd_create("hone-weights", MFD_CLOEXEC);
  if (weights < 0) return ErrnoStatus(errno, "create a memory file");
  const absl::Cleanup close_weights = [&] { close(weights); };
  const std::string path = absl::StrCat("/proc/self/fd/", weights);
  HONE_RETURN_IF_ERROR(WriteWeights({&graph}, kernels, path, planned));

  auto state = std::make_unique<State>();
  for (const NetworkKernel& kernel : kernels) {
    if (planned.plan.is_gpu) continue;
    state->loaded.push_back(kernel.loaded);
    const target::KernelLibrary::Functions functions = kernel.loaded->library().functions();
    state->kernels.push_back(
        {functions.abi, functions.workspace_bytes, functions.packed_bytes, functions.run});
  }
  state->plan = planned.plan.Encode();
  state->program = {state->plan.data(), state->plan.size(), state->kernels.data(),
                    state->kernels.size(), BackendOf(kernels)};
  HONE_RETURN_IF_ERROR(
      ToStatus(hone_network_open_program(&state->program, path.c_str(), device, &state->network)));
  if (!planned.plan.is_gpu) state->runtime = hone_network_threads(options.threads);
  HONE_RETURN_IF_ERROR(ToStatus(hone_network_new_instance(
      state->network, planned.plan.is_gpu ? nullptr : &state->runtime, &state->instance)));
  return std::unique_ptr<Runner>(new Runner(graph, std::move(state)));
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
  std::vector<int64_t> ns(hone_network_step_count(state_->network));
  HONE_RETURN_IF_ERROR(ToStatus(hone_network_profile(state_->instance, in.data(), out.data(),
                                                     times == nullptr ? nullptr : ns.data())));
  for (int s = 0; times != nullptr && static_cast<size_t>(s) < ns.size(); ++s) {
    times->push_back({hone_network_step_name(state_->network, s),
                      hone_network_step_kernel(state_->network, s), ns[s]});
  }
  return outputs;
}

}  // namespace hone::network

#include "client/network/plan/cpu_runner.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "client/network/plan/make_plan.h"
#include "client/network/plan/weights_file.h"
#include "client/network/runtime/hone_program.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_library.h"

namespace hone::network {
namespace {

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
    default:
      return absl::InternalError(hone_network_error());
  }
}

}  // namespace

struct CpuRunner::State {
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

CpuRunner::CpuRunner(const graph::Graph& graph, std::unique_ptr<State> state)
    : Runner(graph), state_(std::move(state)) {}
CpuRunner::~CpuRunner() = default;

int CpuRunner::threads() const { return state_->runtime.threads; }

absl::StatusOr<std::unique_ptr<Runner>> CpuRunner::Create(const graph::Graph& graph,
                                                          const graph::Partition& partition,
                                                          absl::Span<const NetworkKernel> kernels,
                                                          int threads) {
  HONE_ASSIGN_OR_RETURN(PlannedNetwork planned, MakePlan(graph, partition, kernels));
  const int weights = memfd_create("hone-weights", MFD_CLOEXEC);
  if (weights < 0) return ErrnoStatus(errno, "create a memory file");
  const absl::Cleanup close_weights = [&] { close(weights); };
  const std::string path = absl::StrCat("/proc/self/fd/", weights);
  HONE_RETURN_IF_ERROR(WriteWeights(graph, kernels, path, planned));

  auto state = std::make_unique<State>();
  for (const NetworkKernel& kernel : kernels) {
    state->loaded.push_back(kernel.loaded);
    const target::KernelLibrary::Functions functions = kernel.loaded->library().functions();
    state->kernels.push_back(
        {functions.abi, functions.workspace_bytes, functions.packed_bytes, functions.run});
  }
  state->plan = planned.plan.Encode();
  state->program = {state->plan.data(), state->plan.size(), state->kernels.data(),
                    state->kernels.size()};
  HONE_RETURN_IF_ERROR(
      ToStatus(hone_network_open_program(&state->program, path.c_str(), &state->network)));
  state->runtime = hone_network_threads(threads);
  HONE_RETURN_IF_ERROR(
      ToStatus(hone_network_new_instance(state->network, &state->runtime, &state->instance)));
  return std::unique_ptr<Runner>(new CpuRunner(graph, std::move(state)));
}

absl::Status CpuRunner::RunOn(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                              std::vector<StepTime>* times) {
  std::vector<int64_t> ns(hone_network_step_count(state_->network));
  HONE_RETURN_IF_ERROR(ToStatus(hone_network_profile(
      state_->instance, inputs.data(), outputs.data(), times == nullptr ? nullptr : ns.data())));
  if (times == nullptr) return absl::OkStatus();
  for (int s = 0; static_cast<size_t>(s) < ns.size(); ++s) {
    times->push_back({hone_network_step_name(state_->network, s),
                      hone_network_step_kernel(state_->network, s), ns[s]});
  }
  return absl::OkStatus();
}

}  // namespace hone::network

#ifndef HONE_CLIENT_NETWORK_PLAN_RUNNER_H_
#define HONE_CLIENT_NETWORK_PLAN_RUNNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/partition.h"
#include "client/network/plan/network_kernel.h"

namespace hone::network {

// The time of one step of a run.
struct StepTime {
  std::string name;    // the names of its nodes
  std::string kernel;  // the name of its workload, or "copy"
  int64_t ns = 0;
};

struct RunnerOptions {
  int threads = 0;     // on a CPU; 0: hone_network_threads(0)
  std::string device;  // the GPU, such as "opencl:1"; "": the first one with the kernels' target
};

// A network that is ready to run on a device of this machine, with the runtime of exported networks
// (runtime/): the constants are loaded and packed. Only one run at a time is allowed.
class Runner {
 public:
  // Makes a runner for the device of the kernels. `kernels` has one for each task. The arguments
  // need not outlive this call.
  //
  // InvalidArgument: the kernels are for several devices. FailedPrecondition: this machine has no
  // device of the kernels' target, or the CPU lacks an instruction that a kernel uses.
  // ResourceExhausted: out of memory. Unavailable: a GPU refuses a kernel, or fails. Other errors
  // are those of MakePlan and WriteWeights.
  static absl::StatusOr<std::unique_ptr<Runner>> Create(const graph::Graph& graph,
                                                        const graph::Partition& partition,
                                                        absl::Span<const NetworkKernel> kernels,
                                                        const RunnerOptions& options = {});
  ~Runner();

  // The number of this machine's threads that the kernels use; 0 on a GPU.
  int threads() const;
  // Whether a run takes as long if it tells the times of its steps.
  bool times_steps_freely() const;
  // The types of the inputs, in the order of the graph.
  const std::vector<graph::TensorType>& input_types() const { return input_types_; }

  // Computes the outputs. Inputs and outputs are elements, row-major, as in graph::ConstantData.
  // If `times` is not null, sets it to the time of each step. InvalidArgument: the number or a size
  // of the inputs, or an index among them, is wrong. Internal: a kernel on a CPU fails.
  // Unavailable: a GPU or a kernel on it fails; the runner is then of no further use.
  absl::StatusOr<std::vector<std::string>> Run(absl::Span<const absl::string_view> inputs,
                                               std::vector<StepTime>* times = nullptr);

 private:
  struct State;
  Runner(const graph::Graph& graph, std::unique_ptr<State> state);

  std::vector<graph::TensorType> input_types_, output_types_;
  const std::unique_ptr<State> state_;
};

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_PLAN_RUNNER_H_

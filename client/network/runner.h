#ifndef HONE_CLIENT_NETWORK_RUNNER_H_
#define HONE_CLIENT_NETWORK_RUNNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/network/network_kernel.h"
#include "common/graph/graph.h"
#include "common/graph/partition.h"

namespace hone::network {

// The time of one step of a run.
struct StepTime {
  std::string name;    // the names of its nodes
  std::string kernel;  // the name of its workload, or "copy"
  int64_t ns = 0;
};

// Runs a network in this process with the runtime of exported networks, on the threads of OpenMP.
// Only one run at a time is allowed.
class Runner {
 public:
  // Loads and packs the constants. `kernels` has one for each task. The arguments need not outlive
  // this call. `threads` 0: as many as OpenMP uses by default. ResourceExhausted: out of memory.
  // FailedPrecondition: the CPU lacks an instruction that a kernel uses. Other errors are those of
  // MakePlan and WriteWeights.
  static absl::StatusOr<std::unique_ptr<Runner>> Create(const graph::Graph& graph,
                                                        const graph::Partition& partition,
                                                        absl::Span<const NetworkKernel> kernels,
                                                        int threads = 0);
  ~Runner();

  int threads() const;
  // The types of the inputs, in the order of the graph.
  const std::vector<graph::TensorType>& input_types() const { return input_types_; }

  // Computes the outputs. Inputs and outputs are elements, row-major, as in graph::ConstantData.
  // If `times` is not null, sets it to the time of each step. InvalidArgument: the number or a size
  // of the inputs is wrong. Internal: a kernel fails.
  absl::StatusOr<std::vector<std::string>> Run(absl::Span<const absl::string_view> inputs,
                                               std::vector<StepTime>* times = nullptr);

 private:
  struct State;
  explicit Runner(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
  std::vector<graph::TensorType> input_types_, output_types_;
};

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_RUNNER_H_

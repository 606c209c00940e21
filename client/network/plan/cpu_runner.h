#ifndef HONE_CLIENT_NETWORK_PLAN_CPU_RUNNER_H_
#define HONE_CLIENT_NETWORK_PLAN_CPU_RUNNER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/network/plan/runner.h"

namespace hone::network {

// Runs a network in this process with the runtime of exported networks, on its threads.
class CpuRunner final : public Runner {
 public:
  // `threads` 0: hone_network_threads(0). ResourceExhausted: out of memory.
  // FailedPrecondition: the CPU lacks an instruction that a kernel uses. Other errors are those of
  // MakePlan and WriteWeights.
  static absl::StatusOr<std::unique_ptr<Runner>> Create(const graph::Graph& graph,
                                                        const graph::Partition& partition,
                                                        absl::Span<const NetworkKernel> kernels,
                                                        int threads);
  ~CpuRunner() override;

  int threads() const override;
  bool times_steps_freely() const override { return true; }

 private:
  struct State;
  CpuRunner(const graph::Graph& graph, std::unique_ptr<State> state);
  absl::Status RunOn(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                     std::vector<StepTime>* times) override;

  const std::unique_ptr<State> state_;
};

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_PLAN_CPU_RUNNER_H_

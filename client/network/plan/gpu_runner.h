#ifndef HONE_CLIENT_NETWORK_PLAN_GPU_RUNNER_H_
#define HONE_CLIENT_NETWORK_PLAN_GPU_RUNNER_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/network/plan/gpu_plan.h"
#include "client/network/plan/runner.h"
#include "common/target/gpu_context.h"
#include "common/target/gpu_sequence.h"

namespace hone::network {

// Runs a network on a GPU: the constants stay on the device, and a run copies the inputs to it,
// launches all kernels on one queue, and copies the outputs back.
class GpuRunner final : public Runner {
 public:
  // Errors as for Runner::Create.
  static absl::StatusOr<std::unique_ptr<Runner>> Create(std::unique_ptr<target::GpuContext> context,
                                                        const graph::Graph& graph,
                                                        const graph::Partition& partition,
                                                        absl::Span<const NetworkKernel> kernels);

  int threads() const override { return 0; }
  bool times_steps_freely() const override { return false; }

 private:
  GpuRunner(std::unique_ptr<target::GpuContext> context, const graph::Graph& graph, GpuPlan plan)
      : Runner(graph), context_(std::move(context)), plan_(std::move(plan)) {}
  absl::Status LoadPrograms(absl::Span<const NetworkKernel> kernels, const Plan& plan);
  // Allocates all buffers, and copies the constants to theirs.
  absl::Status MakeBuffers(const graph::Graph& graph);
  absl::Status Pack();
  // Checks the indices among the inputs.
  absl::Status CheckIndices(absl::Span<const void* const> inputs) const;
  // Appends a command to a sequence.
  absl::Status Add(const GpuCommand& command, target::GpuSequence& sequence);
  target::GpuMemory* MemoryOf(int part) const;
  absl::Status RunOn(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                     std::vector<StepTime>* times) override;

  // Each member uses those before it.
  const std::unique_ptr<target::GpuContext> context_;
  const GpuPlan plan_;
  Plan network_;                                               // for its checks
  std::vector<StepTime> steps_;                                // without times
  std::vector<std::unique_ptr<target::GpuProgram>> programs_;  // of each task
  std::vector<std::unique_ptr<target::GpuMemory>> buffers_;
  std::vector<std::unique_ptr<target::GpuMemory>> parts_;  // null for a whole buffer
  std::unique_ptr<target::GpuSequence> sequence_;
};

}  // namespace hone::network

#endif  // HONE_CLIENT_NETWORK_PLAN_GPU_RUNNER_H_

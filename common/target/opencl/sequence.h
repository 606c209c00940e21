#ifndef HONE_COMMON_TARGET_OPENCL_SEQUENCE_H_
#define HONE_COMMON_TARGET_OPENCL_SEQUENCE_H_

#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/target/gpu_sequence.h"
#include "common/target/opencl/program.h"

namespace hone::opencl {

// Commands on the context's queue. Every launch has a kernel object with its own parameters, so a
// run sets none.
class OpenClSequence final : public target::GpuSequence {
 public:
  explicit OpenClSequence(OpenClContext& context) : context_(context) {}

  void BeginStep() override { steps_.emplace_back(); }
  absl::Status AddLaunch(target::GpuProgram& program, size_t launch,
                         absl::Span<const target::GpuArgument> arguments) override;
  absl::Status AddCopy(const target::GpuMemory& from, target::GpuMemory& to,
                       int64_t bytes) override;
  absl::Status Run(absl::Span<const target::GpuUpload> uploads,
                   absl::Span<const target::GpuDownload> downloads,
                   std::vector<double>* step_ns) override;

 private:
  struct Copy {
    cl_mem from, to;
    size_t bytes;
  };
  using Command = std::variant<OpenClProgram::Launch, Copy>;
  using Step = std::vector<Command>;

  // The events of a run that is on the queue.
  struct Events {
    std::vector<ClOwned<cl_event>> of_steps;  // of the first and the last command of each
    ClOwned<cl_event> last;                   // of everything
  };
  // Puts everything on the queue. `timed`: with the events of the steps.
  absl::Status Enqueue(absl::Span<const target::GpuUpload> uploads,
                       absl::Span<const target::GpuDownload> downloads, bool timed, Events& events);
  absl::Status Enqueue(const Command& command, cl_event* event);
  // The times of the steps of a run that took `host_ns`; zeros if the device does not tell them, or
  // tells what cannot be.
  std::vector<double> StepTimes(const Events& events, double host_ns) const;

  OpenClContext& context_;
  std::vector<Step> steps_;
};

}  // namespace hone::opencl

#endif  // HONE_COMMON_TARGET_OPENCL_SEQUENCE_H_

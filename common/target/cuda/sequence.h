#ifndef HONE_COMMON_TARGET_CUDA_SEQUENCE_H_
#define HONE_COMMON_TARGET_CUDA_SEQUENCE_H_

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/target/cuda/launch_graph.h"
#include "common/target/cuda/program.h"
#include "common/target/gpu_sequence.h"

namespace hone::cuda {

// Commands on the context's default stream. They are launched as one graph, unless the driver
// cannot record them or the times of the steps are wanted.
class CudaSequence final : public target::GpuSequence {
 public:
  explicit CudaSequence(CudaContext& context) : context_(context) {}
  ~CudaSequence() override;

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
    DevicePointer from, to;
    size_t bytes;
  };
  using Command = std::variant<CudaLaunch, Copy>;
  using Step = std::vector<Command>;

  // Puts a command on a stream.
  Result Put(Command& command, Stream stream);
  // Runs the steps as a graph; false if the driver cannot record them.
  absl::StatusOr<bool> RunAsGraph();
  // Puts the steps on the default stream one by one, with an event before and after each if
  // `timed`.
  absl::Status RunOneByOne(bool timed);
  // Makes the events, one more than there are steps.
  absl::Status MakeEvents();

  CudaContext& context_;
  std::vector<Step> steps_;
  bool has_graph_ = true;  // false once the driver has refused it
  std::unique_ptr<LaunchGraph> graph_;
  std::vector<Event> events_;
};

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_SEQUENCE_H_

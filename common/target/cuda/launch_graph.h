#ifndef HONE_COMMON_TARGET_CUDA_LAUNCH_GRAPH_H_
#define HONE_COMMON_TARGET_CUDA_LAUNCH_GRAPH_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/target/cuda/api.h"
#include "common/target/cuda/context.h"

namespace hone::cuda {

// A CUDA graph of launches. The host starts it with one call, and the device then starts the
// launches one after the other without the host. So a sequence of tiny kernels takes the time of
// the device, and not that of the host's calls, each of which takes some microseconds.
class LaunchGraph {
 public:
  // Records the launches that `launch` puts on a stream; nothing runs. Every error means that the
  // driver or the device cannot do this, and says nothing about the state of the device.
  static absl::StatusOr<std::unique_ptr<LaunchGraph>> Record(
      CudaContext& context, absl::FunctionRef<Result(Stream)> launch);
  ~LaunchGraph();
  LaunchGraph(const LaunchGraph&) = delete;
  LaunchGraph& operator=(const LaunchGraph&) = delete;

  // Puts all launches on the context's default stream.
  absl::Status Launch();

 private:
  LaunchGraph(CudaContext& context, GraphExec exec) : context_(context), exec_(exec) {}

  CudaContext& context_;
  const GraphExec exec_;
};

}  // namespace hone::cuda

#endif  // HONE_COMMON_TARGET_CUDA_LAUNCH_GRAPH_H_

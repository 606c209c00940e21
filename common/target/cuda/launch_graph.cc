#include "common/target/cuda/launch_graph.h"

#include "absl/cleanup/cleanup.h"
#include "common/base/status_macros.h"
#include "common/target/cuda/error.h"

namespace hone::cuda {

absl::StatusOr<std::unique_ptr<LaunchGraph>> LaunchGraph::Record(
    CudaContext& context, absl::FunctionRef<Result(Stream)> launch) {
  const Api& api = context.api();
  // The default stream cannot be recorded.
  Stream stream = nullptr;
  HONE_RETURN_IF_ERROR(ToStatus(api.StreamCreate(&stream, kStreamNonBlocking), "make a stream"));
  const absl::Cleanup destroy_stream = [&] { api.StreamDestroy(stream); };
  HONE_RETURN_IF_ERROR(
      ToStatus(api.StreamBeginCapture(stream, kCaptureThreadLocal), "begin a graph"));
  const Result launched = launch(stream);
  Graph graph = nullptr;
  const Result ended = api.StreamEndCapture(stream, &graph);
  const absl::Cleanup destroy_graph = [&] {
    if (graph != nullptr) api.GraphDestroy(graph);
  };
  HONE_RETURN_IF_ERROR(ToStatus(launched, "record a launch"));
  HONE_RETURN_IF_ERROR(ToStatus(ended, "end a graph"));
  GraphExec exec = nullptr;
  HONE_RETURN_IF_ERROR(ToStatus(api.GraphInstantiate(&exec, graph, 0), "prepare a graph"));
  return std::unique_ptr<LaunchGraph>(new LaunchGraph(context, exec));
}

LaunchGraph::~LaunchGraph() {
  if (!context_.lost()) context_.api().GraphExecDestroy(exec_);
}

absl::Status LaunchGraph::Launch() {
  return context_.Check(context_.api().GraphLaunch(exec_, nullptr), "launch a graph");
}

}  // namespace hone::cuda

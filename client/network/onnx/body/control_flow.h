#ifndef HONE_CLIENT_NETWORK_ONNX_BODY_CONTROL_FLOW_H_
#define HONE_CLIENT_NETWORK_ONNX_BODY_CONTROL_FLOW_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/network/onnx/body/item.h"
#include "client/network/onnx/graph_builder.h"

namespace hone::onnx {

// If, Loop, Scan and SequenceMap, whose bodies are graphs.
bool IsControlFlow(absl::string_view op);

// Adds the nodes of the branch that an If takes, or of every iteration of a loop, and returns the
// results. REQUIRES: IsControlFlow().
//
// FailedPrecondition: the condition, or the number of iterations, depends on the inputs of the
// network; the message names them. InvalidArgument: the node is not legal. Other errors are those
// of `run`.
absl::StatusOr<std::vector<Item>> AddControlFlow(const ItemNode& node, GraphBuilder& builder,
                                                 const RunBody& run);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_BODY_CONTROL_FLOW_H_

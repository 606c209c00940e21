#ifndef HONE_CLIENT_NETWORK_ONNX_REPLACED_H_
#define HONE_CLIENT_NETWORK_ONNX_REPLACED_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/network/onnx/graph_builder.h"
#include "client/network/onnx/opset.h"
#include "client/network/onnx/tensor_file.h"

namespace hone::onnx {

// Operators of which no node remains: Constant and ConstantOfShape become constants; Identity and
// Dropout, which does nothing outside of training, become their inputs.
bool IsReplaced(absl::string_view op);

// Returns the values of the outputs of such a node. `tensors`: its attributes that are tensors.
// InvalidArgument: the node is not legal. Unimplemented: Hone does not support this form of it.
// FailedPrecondition: a shape is not constant. ResourceExhausted: the constant is too large.
// REQUIRES: IsReplaced(node.node.op).
absl::StatusOr<std::vector<graph::ValueId>> Replace(const VersionedNode& node,
                                                    const std::map<std::string, Tensor>& tensors,
                                                    GraphBuilder& builder);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_REPLACED_H_

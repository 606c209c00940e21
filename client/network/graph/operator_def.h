#ifndef HONE_CLIENT_NETWORK_GRAPH_OPERATOR_DEF_H_
#define HONE_CLIENT_NETWORK_GRAPH_OPERATOR_DEF_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/stage_writer.h"
#include "common/ir/interpreter.h"

namespace hone::graph {

// The types of a node's outputs, as many as the operator has (not only the wanted ones).
using Types = std::vector<TensorType>;

// An operator of networks: ONNX's of the same name, with the semantics of opset 25.
struct OperatorDef {
  absl::string_view name;
  int min_inputs;  // inputs beyond these are optional
  int max_inputs;  // -1: any number
  // Infers the types of the outputs. InvalidArgument: the inputs or attributes are not legal.
  // Unimplemented: Hone does not support this case. FailedPrecondition: an input must be constant.
  // The caller has checked the number of inputs.
  absl::StatusOr<Types> (*infer)(const NodeView& node);
  // Writes the stages that compute the wanted outputs. REQUIRES: infer() accepted the node. Null
  // for operators that are always folded.
  absl::Status (*define)(const NodeView& node, StageWriter& writer);
  // The element types that the operator accepts and the cases that it does not support, as
  // `hone operators --onnx` prints them; "" if there are no limits.
  absl::string_view limits = "";
  // Computes the elements of all outputs if stages cannot express them. Null: folding interprets
  // the stages of define(). REQUIRES: infer() accepted the node, and CanFold() (interpreter.h).
  absl::StatusOr<std::vector<ir::Scalars>> (*fold)(const NodeView& node) = nullptr;
  // Whether the outputs depend on the types of the inputs alone, as Shape's do.
  bool from_types = false;
};

// Returns the operator; null if it is unknown.
const OperatorDef* FindOperator(absl::string_view name);
// All operators, in the order of their names.
const std::vector<const OperatorDef*>& Operators();

// Checks the number of inputs and calls infer(). Unimplemented: the operator is unknown. Every
// message names the node.
absl::StatusOr<Types> InferTypes(const NodeView& node);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OPERATOR_DEF_H_

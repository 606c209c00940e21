#ifndef HONE_COMMON_GRAPH_OPERATOR_DEF_H_
#define HONE_COMMON_GRAPH_OPERATOR_DEF_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/graph/graph.h"
#include "common/graph/node_view.h"
#include "common/graph/stage_writer.h"
#include "common/ir/interpreter.h"

namespace hone::graph {

// The types of a node's outputs, as many as the operator has (not only the wanted ones).
using Types = std::vector<TensorType>;

// An operator of networks: ONNX's of the same name, in the semantics of opset 21.
struct OperatorDef {
  absl::string_view name;
  int min_inputs;  // inputs beyond these are optional
  int max_inputs;  // -1: any number
  // Gives the types of the outputs. InvalidArgument: the inputs or attributes are not legal.
  // Unimplemented: a case that Hone does not support. FailedPrecondition: an input must be
  // constant. The number of inputs has been checked.
  absl::StatusOr<Types> (*infer)(const NodeView& node);
  // Writes the stages that compute the wanted outputs. REQUIRES: infer() accepted the node. Null
  // for operators that are always folded.
  absl::Status (*define)(const NodeView& node, StageWriter& writer);
  // The types of elements of the network's tensors that the operator accepts, and what it does not
  // support, for `hone operators --onnx`; "" if there are no limits.
  absl::string_view limits = "";
  // Gives the elements of all outputs where stages cannot compute them. Null: define() is folded.
  // REQUIRES: infer() accepted the node, and CanFold() (interpreter.h).
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

#endif  // HONE_COMMON_GRAPH_OPERATOR_DEF_H_

#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_ELEMENT_TYPE_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_ELEMENT_TYPE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/operator_def.h"
#include "common/ir/dtype.h"

namespace hone::graph {

// Whether the elements are floats of 8 bits.
inline bool IsShortFloat(ir::DType dtype) {
  return dtype == ir::DType::kF8E4M3 || dtype == ir::DType::kF8E5M2;
}

// Returns the type with this number in ONNX's TensorProto.DataType. Unimplemented, naming the node:
// Hone does not have the type.
absl::StatusOr<ir::DType> ElementType(const NodeView& node, int64_t onnx_type);
// The type that an attribute names by its number in ONNX. REQUIRES: the node has the attribute.
absl::StatusOr<ir::DType> ElementTypeAttribute(const NodeView& node, absl::string_view name);

// infer() for operators whose output has the type of the first input. The element type may be any,
// a float, or a number.
absl::StatusOr<Types> SameType(const NodeView& node);
absl::StatusOr<Types> SameFloatType(const NodeView& node);
absl::StatusOr<Types> SameNumberType(const NodeView& node);

// Check the element type of an input. InvalidArgument, naming the node: it is another type.
absl::Status NeedFloat(const NodeView& node, int input);
absl::Status NeedNumber(const NodeView& node, int input);
absl::Status NeedType(const NodeView& node, int input, ir::DType dtype);
// Checks that the inputs `first` to `last` that are present have the same element type.
// InvalidArgument: they do not.
absl::Status NeedOneType(const NodeView& node, int first, int last);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_ELEMENT_TYPE_H_

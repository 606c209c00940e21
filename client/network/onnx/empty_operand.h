#ifndef HONE_CLIENT_NETWORK_ONNX_EMPTY_OPERAND_H_
#define HONE_CLIENT_NETWORK_ONNX_EMPTY_OPERAND_H_

#include <optional>

#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/node_view.h"
#include "common/ir/expr.h"

namespace hone::onnx {

// The element that all of a result has although an operand is empty: a sum of no products, a
// reduction of no elements, or padding of nothing. nullopt: no operand is empty, or ONNX does not
// define the result (a mean of no elements, a padding with elements of the edge). `result`: the
// type of the only output, which is not empty. Errors are those of the node's attributes.
absl::StatusOr<std::optional<ir::Scalar>> ElementOfEmpty(const graph::NodeView& node,
                                                         const graph::TensorType& result);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_EMPTY_OPERAND_H_

#ifndef HONE_CLIENT_NETWORK_ONNX_BODY_SEQUENCE_H_
#define HONE_CLIENT_NETWORK_ONNX_BODY_SEQUENCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/network/onnx/body/item.h"
#include "client/network/onnx/graph_builder.h"

namespace hone::onnx {

// The operators on sequences and optional values that have no body.
const std::vector<std::string>& SequenceOperators();

// Whether a node has one of these operators, or is the Identity of something else than a tensor.
bool IsOnItems(const ItemNode& node);

// Returns the results of such a node. REQUIRES: IsOnItems(). InvalidArgument: the node is not
// legal. FailedPrecondition: a position or a size is not constant.
absl::StatusOr<std::vector<Item>> AddOnItems(const ItemNode& node, GraphBuilder& builder);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_BODY_SEQUENCE_H_

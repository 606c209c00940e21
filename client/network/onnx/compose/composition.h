#ifndef HONE_CLIENT_NETWORK_ONNX_COMPOSE_COMPOSITION_H_
#define HONE_CLIENT_NETWORK_ONNX_COMPOSE_COMPOSITION_H_

#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/graph_builder.h"
#include "client/network/onnx/opset.h"
#include "client/network/onnx/rewrite.h"

namespace hone::onnx {

// The values of the outputs of a model's node, all that its operator has; kNoValue for those that
// are not wanted.
using Composed = absl::StatusOr<std::vector<graph::ValueId>>;

// An operator of which nodes of other operators remain.
struct Composition {
  absl::string_view op;  // see OperatorName()
  // Adds these nodes. InvalidArgument: the node is not legal. Unimplemented: Hone does not support
  // this form of it. FailedPrecondition: an input must be constant. The messages name the node.
  Composed (*compose)(Rewrite& rewrite);
  absl::string_view limits = "";
  // Whether to replace the node; null: always.
  bool (*applies)(const graph::NodeView& node) = nullptr;
  // The number of inputs; those beyond the least are optional. By default, `compose` checks it.
  struct {
    int least = 0, most = std::numeric_limits<int>::max();
  } inputs = {};
};

// All of them.
const std::vector<Composition>& Compositions();
// The one that replaces a node; null: the node stays.
const Composition* FindComposition(const graph::NodeView& node);

// Adds the nodes that a node becomes, and returns the values of its outputs. Errors are those of
// Composition::compose, and InvalidArgument if the node has too few or too many inputs or outputs.
Composed Compose(const Composition& composition, VersionedNode& node, GraphBuilder& builder);

// Those of a family, one source each.
absl::Span<const Composition> FusedCompositions();
absl::Span<const Composition> PlaceCompositions();
absl::Span<const Composition> RecurrentCompositions();
absl::Span<const Composition> ResizeCompositions();
absl::Span<const Composition> SamplingCompositions();
absl::Span<const Composition> SignalCompositions();
absl::Span<const Composition> StatisticsCompositions();

// attention_operators.cc and matmul_nbits.cc, for FusedCompositions.
Composed ComposeAttention(Rewrite& rewrite);
Composed ComposeGroupQueryAttention(Rewrite& rewrite);
Composed ComposeMultiHeadAttention(Rewrite& rewrite);
Composed ComposeMatMulNBits(Rewrite& rewrite);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_COMPOSE_COMPOSITION_H_

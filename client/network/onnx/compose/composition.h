#ifndef HONE_CLIENT_NETWORK_ONNX_COMPOSE_COMPOSITION_H_
#define HONE_CLIENT_NETWORK_ONNX_COMPOSE_COMPOSITION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/compose/composer.h"

namespace hone::onnx {

// An operator of which nodes of other operators remain.
struct Composition {
  absl::string_view op;
  // Adds these nodes and returns the values of the outputs; kNoValue for those that are not wanted.
  // InvalidArgument: the node is not legal. Unimplemented: Hone does not support this form of it.
  // FailedPrecondition: an input must be constant.
  absl::StatusOr<std::vector<graph::ValueId>> (*compose)(Composer& composer);
  absl::string_view limits = "";
  // Whether to replace the node; null: always.
  bool (*applies)(const graph::NodeView& node) = nullptr;
};

// All of them.
const std::vector<Composition>& Compositions();
// The one that replaces a node; null: the node stays.
const Composition* FindComposition(const graph::NodeView& node);

// Those of a family, one source each.
absl::Span<const Composition> RecurrentCompositions();
absl::Span<const Composition> ResizeCompositions();
absl::Span<const Composition> SamplingCompositions();
absl::Span<const Composition> SignalCompositions();
absl::Span<const Composition> StatisticsCompositions();

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_COMPOSE_COMPOSITION_H_

#include <vector>

#include "absl/strings/match.h"
#include "client/network/graph/partition/rules.h"

namespace hone::graph {
namespace {

using Shape = std::vector<int64_t>;

bool IsReduction(const Fusion& fusion, int node) {
  return fusion.kind(node) == NodeKind::kAnchor && fusion.IsAlone(node) &&
         absl::StartsWith(fusion.graph().nodes[node].op, "Reduce");
}

const Shape& InputShape(const Fusion& fusion, int node) {
  return fusion.graph().value(fusion.graph().nodes[node].inputs[0]).type.shape;
}

// Merges a reduction with the nodes that use its result: elementwise nodes that have the shape of
// the reduction's input or result, and other reductions from the same shape to the same shape.
void Grow(Fusion& fusion, int reduction) {
  const Shape& full = InputShape(fusion, reduction);
  const Shape& reduced = fusion.TypeOf(reduction).shape;
  const auto allowed = [&](int node) {
    const Shape& shape = fusion.TypeOf(node).shape;
    if (IsReduction(fusion, node)) {
      return InputShape(fusion, node) == full && shape == reduced;
    }
    return fusion.kind(node) == NodeKind::kElementwise && fusion.IsAlone(node) &&
           (shape == full || shape == reduced);
  };
  while (const auto result = fusion.ResultOf(reduction)) {
    auto nodes = fusion.Enclosed(*result, allowed);
    if (!nodes) return;
    nodes->push_back(reduction);
    if (!fusion.Merge(*nodes)) return;
  }
}

}  // namespace

void FuseNormalizations(Fusion& fusion) {
  for (size_t n = 0; n < fusion.graph().nodes.size(); ++n) {
    if (IsReduction(fusion, static_cast<int>(n))) Grow(fusion, static_cast<int>(n));
  }
}

}  // namespace hone::graph

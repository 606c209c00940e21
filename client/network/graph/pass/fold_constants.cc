#include <algorithm>

#include "client/network/graph/fold_cost.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/operator_def.h"
#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"

namespace hone::graph {
namespace {

// More work than this takes the interpreter minutes. FoldCost() says what is counted.
constexpr double kMaxCost = 1 << 26;

}  // namespace

absl::StatusOr<bool> FoldConstants(Graph& graph, int64_t max_elements) {
  for (Node& node : graph.nodes) {
    const bool fits = std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      return id == kNoValue || graph.value(id).type.elements() <= max_elements;
    });
    if (!fits || !CanFold(graph, node)) continue;
    const auto types = InferTypes(NodeView(graph, node));
    if (!types.ok() || FoldCost(graph, node, *types) > kMaxCost) continue;
    const auto folded = Fold(graph, node);
    if (!folded.ok()) continue;
    auto data = folded->begin();
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) graph.values[id].constant = *data++;
    }
    MarkRemoved(node);
  }
  return EraseRemoved(graph);
}

}  // namespace hone::graph

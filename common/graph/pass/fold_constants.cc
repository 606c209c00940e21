#include <algorithm>

#include "common/graph/interpreter.h"
#include "common/graph/pass/edit.h"
#include "common/graph/pass/passes.h"

namespace hone::graph {

absl::StatusOr<bool> FoldConstants(Graph& graph, int64_t max_elements) {
  for (Node& node : graph.nodes) {
    const bool fits = std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      return id == kNoValue || graph.value(id).type.elements() <= max_elements;
    });
    if (!fits || !CanFold(graph, node)) continue;
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

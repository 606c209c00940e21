#include "absl/strings/str_cat.h"
#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"

namespace hone::graph {
namespace {

bool ChangesShape(const Node& node) {
  return node.op == "Reshape" || node.op == "Flatten" || node.op == "Squeeze" ||
         node.op == "Unsqueeze";
}

}  // namespace

absl::StatusOr<bool> MergeReshapes(Graph& graph) {
  bool changed = false;
  const std::vector<int> producers = graph.Producers();
  for (Node& node : graph.nodes) {
    if (!ChangesShape(node)) continue;
    const int producer = producers[node.inputs[0]];
    if (producer < 0 || !ChangesShape(graph.nodes[producer])) continue;
    const Value& result = graph.value(node.outputs[0]);
    if (result.type.elements() == 0) continue;  // Reshape gives a 0 in a shape another meaning
    const ValueId source = graph.nodes[producer].inputs[0];
    const ValueId shape = AddInts(graph, absl::StrCat(result.name, ".shape"),
                                  std::vector<int64_t>(result.type.shape));
    node = {node.name, "Reshape", {source, shape}, node.outputs, {}};
    changed = true;
  }
  return changed;
}

}  // namespace hone::graph

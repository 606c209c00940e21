#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

absl::StatusOr<std::vector<int64_t>> PermutationOf(const Graph& graph, const Node& node) {
  const NodeView view(graph, node);
  std::vector<int64_t> reversed;
  for (int64_t d = view.Rank(0) - 1; d >= 0; --d) reversed.push_back(d);
  return view.IntList("perm", reversed);
}

}  // namespace

absl::StatusOr<bool> MergeTransposes(Graph& graph) {
  bool changed = false;
  const std::vector<int> producers = graph.Producers();
  for (Node& node : graph.nodes) {
    if (node.op != "Transpose") continue;
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> permutation, PermutationOf(graph, node));
    const int producer = producers[node.inputs[0]];
    if (producer >= 0 && graph.nodes[producer].op == "Transpose") {
      const Node& first = graph.nodes[producer];
      HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> before, PermutationOf(graph, first));
      for (int64_t& d : permutation) d = before[d];
      node.inputs[0] = first.inputs[0];
      node.attributes["perm"] = permutation;
      changed = true;
    }
    const Value& result = graph.value(node.outputs[0]);
    const std::vector<int64_t>& shape = graph.value(node.inputs[0]).type.shape;
    std::erase_if(permutation, [&](int64_t d) { return shape[d] == 1; });
    if (result.type.elements() == 0 || !std::is_sorted(permutation.begin(), permutation.end())) {
      continue;
    }
    const ValueId target = AddInts(graph, absl::StrCat(result.name, ".shape"),
                                   std::vector<int64_t>(result.type.shape));
    node = {node.name, "Reshape", {node.inputs[0], target}, node.outputs, {}};
    changed = true;
  }
  return changed;
}

}  // namespace hone::graph

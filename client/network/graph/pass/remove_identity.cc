#include <algorithm>

#include "absl/strings/string_view.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

// Whether the result of an operator is its input if their types are equal.
bool KeepsElements(absl::string_view op) {
  static constexpr absl::string_view kOperators[] = {"Identity",  "Dropout", "Cast",
                                                     "Reshape",   "Flatten", "Squeeze",
                                                     "Unsqueeze", "Expand",  "Tile"};
  return std::count(std::begin(kOperators), std::end(kOperators), op) > 0;
}

// Whether an input is absent, or a constant whose elements all have this value.
absl::StatusOr<bool> HasOnly(const NodeView& node, int input, int64_t element) {
  if (!node.Has(input)) return true;
  if (!node.IsConstant(input)) return false;
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> ints, node.Ints(input));
  return std::all_of(ints.begin(), ints.end(), [&](int64_t each) { return each == element; });
}

// Whether a permutation keeps the order of the dimensions with more than one element.
absl::StatusOr<bool> KeepsOrder(const NodeView& node) {
  std::vector<int64_t> reversed;
  for (int64_t d = node.Rank(0) - 1; d >= 0; --d) reversed.push_back(d);
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> permutation, node.IntList("perm", reversed));
  std::erase_if(permutation, [&](int64_t d) { return node.Shape(0)[d] == 1; });
  return std::is_sorted(permutation.begin(), permutation.end());
}

// REQUIRES: the only result has the type of the first input.
absl::StatusOr<bool> IsIdentity(const NodeView& node) {
  const absl::string_view op = node.node().op;
  if (KeepsElements(op)) return true;
  if (op == "Transpose") return KeepsOrder(node);
  if (op == "Pad") return HasOnly(node, 1, 0);
  if (op == "Slice") return HasOnly(node, 4, 1);
  return op == "Concat" && node.inputs() == 1;
}

}  // namespace

absl::StatusOr<bool> RemoveIdentity(Graph& graph) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.outputs.empty() || node.inputs.empty() || node.inputs[0] == kNoValue) continue;
    const auto is_wanted = [](ValueId id) { return id != kNoValue; };
    if (node.outputs[0] == kNoValue ||
        std::count_if(node.outputs.begin(), node.outputs.end(), is_wanted) != 1) {
      continue;
    }
    if (graph.value(node.inputs[0]).type != graph.value(node.outputs[0]).type) continue;
    HONE_ASSIGN_OR_RETURN(const bool is_identity, IsIdentity(NodeView(graph, node)));
    if (is_identity) ReplaceBy(graph, static_cast<int>(n), node.inputs[0]);
  }
  return EraseRemoved(graph);
}

}  // namespace hone::graph

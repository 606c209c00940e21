#include "client/network/graph/pass/layout_role.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "client/network/graph/group.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/op/layout.h"
#include "client/network/graph/partition/node_kind.h"

namespace hone::graph {
namespace {

size_t RankOf(const Graph& graph, ValueId id) { return graph.value(id).type.shape.size(); }

// Whether each input can have the layout of the output, or broadcasts in any layout.
bool FitsImages(const Graph& graph, const Node& node) {
  const size_t rank = RankOf(graph, node.outputs[0]);
  return rank >= 3 && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
           if (id == kNoValue || graph.value(id).type.elements() == 1) return true;
           return RankOf(graph, id) == rank || graph.IsConstant(id);
         });
}

bool IsReduction(const Graph& graph, const NodeView& node) {
  return absl::StartsWith(node.node().op, "Reduce") && node.Int("keepdims", 1).value_or(0) != 0 &&
         (!node.Has(1) || node.IsConstant(1)) &&
         RankOf(graph, node.node().outputs[0]) == RankOf(graph, node.node().inputs[0]);
}

LayoutRole RoleOf(const Graph& graph, int n) {
  const Node& node = graph.nodes[n];
  const NodeView view(graph, node);
  if (!view.Has(0) || !view.WantsOutput(0) || view.Rank(0) < 3) return LayoutRole::kFixed;
  const bool has_places = node.op == "MaxPool" && view.WantsOutput(1);
  if (HasKernels(node.op) || node.op == "AveragePool" || node.op == "GlobalAveragePool" ||
      node.op == "GlobalMaxPool" || (node.op == "MaxPool" && !has_places)) {
    return LayoutRole::kWindow;
  }
  if (node.op == "Concat" || node.op == "Split") return LayoutRole::kAlongAxis;
  if (IsReduction(graph, view)) return LayoutRole::kReduction;
  if (node.op == "Pad") {
    return view.IsConstant(1) && !view.Has(3) ? LayoutRole::kPad : LayoutRole::kFixed;
  }
  if (view.HasAttribute("axis") || !FitsImages(graph, node)) return LayoutRole::kFixed;
  const absl::StatusOr<Group> group = MakeGroup(graph, {n}, "node");
  if (!group.ok() || KindOf(group->workload) != NodeKind::kElementwise) return LayoutRole::kFixed;
  // An integer input that no stage reads may contain numbers of dimensions.
  const bool reads_all = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    return id == kNoValue || graph.value(id).type.dtype != ir::DType::kI64 ||
           std::count(group->inputs.begin(), group->inputs.end(), id) > 0;
  });
  return reads_all || node.op == "Clip" ? LayoutRole::kElementwise : LayoutRole::kFixed;
}

}  // namespace

std::vector<LayoutRole> LayoutRoles(const Graph& graph) {
  const std::vector<std::vector<int>> readers = graph.Consumers();
  const auto is_needed = [&](ValueId id) {
    return id != kNoValue &&
           (!readers[id].empty() || std::count(graph.outputs.begin(), graph.outputs.end(), id) > 0);
  };
  std::vector<LayoutRole> roles;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::vector<ValueId>& outputs = graph.nodes[n].outputs;
    const bool needed = std::all_of(outputs.begin(), outputs.end(), is_needed);
    roles.push_back(needed ? RoleOf(graph, static_cast<int>(n)) : LayoutRole::kFixed);
  }
  return roles;
}

bool IsImage(const Graph& graph, const Node& node, LayoutRole role, size_t input) {
  const ValueId id = node.inputs[input];
  if (id == kNoValue) return false;
  if (role == LayoutRole::kElementwise) return graph.value(id).type.elements() != 1;
  return input == 0 || (role == LayoutRole::kAlongAxis && node.op == "Concat");
}

}  // namespace hone::graph

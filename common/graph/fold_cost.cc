#include "common/graph/fold_cost.h"

#include "absl/strings/str_cat.h"
#include "common/graph/group.h"

namespace hone::graph {
namespace {

double Points(const ir::Workload& workload) {
  double points = 0;
  for (const ir::Stage& stage : workload.stages) {
    double product = 1;
    for (const ir::Axis& axis : stage.spatial) product *= static_cast<double>(axis.extent);
    for (const ir::Axis& axis : stage.reduce) product *= static_cast<double>(axis.extent);
    points += product;
  }
  return points;
}

}  // namespace

double FoldCost(const Graph& graph, const Node& node, const Types& types, size_t outputs) {
  double cost = 0;
  for (size_t i = 0; i < outputs; ++i) cost += static_cast<double>(types[i].elements());
  const OperatorDef* const def = FindOperator(node.op);
  if (def->from_types) return cost;
  // A graph of this node alone, whose stages can be counted.
  Graph alone;
  Node copy = node;
  std::vector<std::string> names;
  for (ValueId& id : copy.inputs) {
    if (id == kNoValue) continue;
    const Value& value = graph.value(id);
    cost += static_cast<double>(value.type.elements());
    id = alone.AddConstant(absl::StrCat("x", alone.values.size()), value.type, *value.constant);
  }
  if (def->fold != nullptr || def->define == nullptr) return cost;
  for (size_t i = 0; i < outputs; ++i) names.push_back(absl::StrCat("y", i));
  if (!alone.AddNode(std::move(copy), names).ok()) return cost;
  alone.outputs = alone.nodes[0].outputs;
  const absl::StatusOr<Group> group = MakeGroup(alone, {0}, "node");
  return group.ok() ? cost + Points(group->workload) : cost;
}

}  // namespace hone::graph

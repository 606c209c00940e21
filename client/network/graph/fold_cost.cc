#include "client/network/graph/fold_cost.h"

#include "client/network/graph/group.h"

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

double FoldCost(const Graph& graph, const Node& node, const Types& types) {
  double cost = 0;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) cost += static_cast<double>(types[i].elements());
  }
  const OperatorDef* const def = FindOperator(node.op);
  if (def->from_types) return cost;
  for (const ValueId id : node.inputs) {
    if (id != kNoValue) cost += static_cast<double>(graph.value(id).type.elements());
  }
  if (def->fold != nullptr || def->define == nullptr) return cost;
  // The stages of the node alone can be counted.
  const absl::StatusOr<Graph> alone = AloneInGraph(graph, node);
  if (!alone.ok()) return cost;
  const absl::StatusOr<Group> group = MakeGroup(*alone, {0}, "node");
  return group.ok() ? cost + Points(group->workload) : cost;
}

}  // namespace hone::graph

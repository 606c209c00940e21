#include "client/onnx/fold_cost.h"

#include "absl/strings/str_cat.h"
#include "common/graph/group.h"

namespace hone::onnx {
namespace {

using graph::kNoValue;

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

double FoldCost(const graph::Graph& graph, const graph::Node& node, const graph::Types& types,
                size_t outputs) {
  double cost = 0;
  for (size_t i = 0; i < outputs; ++i) cost += static_cast<double>(types[i].elements());
  const graph::OperatorDef* const def = graph::FindOperator(node.op);
  if (def->from_types) return cost;
  // A graph of this node alone, whose stages can be counted.
  graph::Graph alone;
  graph::Node copy = node;
  std::vector<std::string> names;
  for (graph::ValueId& id : copy.inputs) {
    if (id == kNoValue) continue;
    const graph::Value& value = graph.value(id);
    cost += static_cast<double>(value.type.elements());
    id = alone.AddConstant(absl::StrCat("x", alone.values.size()), value.type, *value.constant);
  }
  if (def->fold != nullptr || def->define == nullptr) return cost;
  for (size_t i = 0; i < outputs; ++i) names.push_back(absl::StrCat("y", i));
  if (!alone.AddNode(std::move(copy), names).ok()) return cost;
  alone.outputs = alone.nodes[0].outputs;
  const absl::StatusOr<graph::Group> group = MakeGroup(alone, {0}, "node");
  return group.ok() ? cost + Points(group->workload) : cost;
}

}  // namespace hone::onnx

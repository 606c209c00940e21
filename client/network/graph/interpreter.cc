#include "client/network/graph/interpreter.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/group.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/operator_def.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

bool AllEmpty(const Graph& graph, const Node& node) {
  return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
    return id == kNoValue || graph.value(id).type.elements() == 0;
  });
}

// Computes the outputs of node n of the graph, and adds them to the known elements.
absl::Status Run(const Graph& graph, int n, std::vector<ir::Scalars>& known) {
  const Node& node = graph.nodes[n];
  if (AllEmpty(graph, node)) return absl::OkStatus();
  const OperatorDef* const def = FindOperator(node.op);
  if (def != nullptr && def->fold != nullptr && CanFold(graph, node)) {
    HONE_ASSIGN_OR_RETURN(std::vector<ir::Scalars> results, def->fold(NodeView(graph, node)));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNoValue) known[node.outputs[i]] = std::move(results[i]);
    }
    return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(const Group group, MakeGroup(graph, {n}, "node"));
  std::vector<ir::Scalars> inputs;
  for (const ValueId id : group.inputs) {
    const Value& value = graph.value(id);
    inputs.push_back(value.constant ? Decode(value.type, value.constant->bytes()) : known[id]);
  }
  HONE_ASSIGN_OR_RETURN(std::vector<ir::Scalars> results, ir::Interpret(group.workload, inputs));
  for (size_t i = 0; i < results.size(); ++i) known[group.outputs[i]] = std::move(results[i]);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ir::Scalars>> Interpret(const Graph& graph,
                                                   absl::Span<const ir::Scalars> inputs) {
  if (inputs.size() != graph.inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the graph has ", graph.inputs.size(), " inputs, not ", inputs.size()));
  }
  std::vector<ir::Scalars> known(graph.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph.value(graph.inputs[i]);
    if (static_cast<int64_t>(inputs[i].size()) != value.type.elements()) {
      return absl::InvalidArgumentError(absl::StrCat("input '", value.name, "' has ",
                                                     inputs[i].size(), " elements instead of ",
                                                     value.type.elements()));
    }
    known[graph.inputs[i]] = inputs[i];
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    HONE_RETURN_IF_ERROR(Run(graph, static_cast<int>(n), known));
  }
  std::vector<ir::Scalars> outputs;
  for (const ValueId id : graph.outputs) {
    const Value& value = graph.value(id);
    outputs.push_back(value.constant ? Decode(value.type, value.constant->bytes()) : known[id]);
  }
  return outputs;
}

bool CanFold(const Graph& graph, const Node& node) {
  const OperatorDef* const def = FindOperator(node.op);
  if (def == nullptr) return false;
  return def->from_types || std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
           return id == kNoValue || graph.IsConstant(id);
         });
}

absl::StatusOr<std::vector<ConstantData>> Fold(const Graph& graph, const Node& node) {
  // In a graph of this node alone, all of its outputs are outputs of the graph.
  HONE_ASSIGN_OR_RETURN(const Graph alone, AloneInGraph(graph, node));
  HONE_ASSIGN_OR_RETURN(const std::vector<ir::Scalars> results, Interpret(alone, {}));
  std::vector<ConstantData> folded;
  for (size_t i = 0; i < results.size(); ++i) {
    folded.emplace_back(Encode(alone.value(alone.outputs[i]).type, results[i]));
  }
  return folded;
}

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

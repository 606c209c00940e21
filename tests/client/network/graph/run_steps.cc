#include "tests/client/network/graph/run_steps.h"

#include "client/network/graph/group.h"
#include "client/network/graph/node_view.h"

namespace hone::graph {

absl::StatusOr<std::vector<ir::Scalars>> RunSteps(const Graph& graph, const Partition& partition,
                                                  const std::vector<ir::Scalars>& inputs) {
  std::vector<ir::Scalars> known(graph.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) known[graph.inputs[i]] = inputs[i];
  for (size_t id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    if (value.constant) known[id] = Decode(value.type, value.constant->bytes());
  }
  for (const Step& step : partition.steps) {
    absl::StatusOr<Group> alias = absl::UnknownError("");
    if (step.kind == Step::Kind::kAlias) alias = MakeGroup(graph, step.nodes, "alias");
    std::vector<ir::Scalars> operands;
    for (const ValueId id : alias.ok() ? alias->inputs : step.inputs) {
      if (known[id].empty()) return absl::InternalError("a step reads a value too early");
      operands.push_back(known[id]);
    }
    auto results =
        ir::Interpret(alias.ok() ? alias->workload : partition.tasks[step.task].workload, operands);
    if (!results.ok()) return results.status();
    if (results->size() != step.outputs.size()) {
      return absl::InternalError("a step and its workload have different numbers of outputs");
    }
    for (size_t i = 0; i < results->size(); ++i) known[step.outputs[i]] = (*results)[i];
  }
  std::vector<ir::Scalars> outputs;
  for (const ValueId id : graph.outputs) outputs.push_back(known[id]);
  return outputs;
}

}  // namespace hone::graph

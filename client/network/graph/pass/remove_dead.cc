#include <algorithm>

#include "client/network/graph/pass/passes.h"

namespace hone::graph {
namespace {

// Marks the values that the outputs of the graph depend on.
std::vector<bool> FindNeeded(const Graph& graph) {
  std::vector<bool> needed(graph.values.size());
  for (const ValueId id : graph.outputs) needed[id] = true;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool runs = std::any_of(node->outputs.begin(), node->outputs.end(),
                                  [&](ValueId id) { return id != kNoValue && needed[id]; });
    if (!runs) continue;
    for (const ValueId id : node->inputs) {
      if (id != kNoValue) needed[id] = true;
    }
  }
  return needed;
}

void Renumber(std::vector<ValueId>& ids, const std::vector<ValueId>& numbers) {
  for (ValueId& id : ids) {
    if (id != kNoValue) id = numbers[id];
  }
}

}  // namespace

absl::StatusOr<bool> RemoveDead(Graph& graph) {
  std::vector<bool> needed = FindNeeded(graph);
  bool changed = false;
  for (Node& node : graph.nodes) {
    for (ValueId& id : node.outputs) {
      if (id == kNoValue || needed[id]) continue;
      id = kNoValue;
      changed = true;
    }
  }
  changed |= std::erase_if(graph.nodes, [](const Node& node) {
               return std::all_of(node.outputs.begin(), node.outputs.end(),
                                  [](ValueId id) { return id == kNoValue; });
             }) > 0;
  for (const ValueId id : graph.inputs) needed[id] = true;
  std::vector<ValueId> numbers(graph.values.size(), kNoValue);
  std::vector<Value> values;
  for (size_t id = 0; id < graph.values.size(); ++id) {
    if (!needed[id]) continue;
    numbers[id] = static_cast<ValueId>(values.size());
    values.push_back(std::move(graph.values[id]));
  }
  changed |= values.size() < graph.values.size();
  graph.values = std::move(values);
  for (Node& node : graph.nodes) {
    Renumber(node.inputs, numbers);
    Renumber(node.outputs, numbers);
  }
  Renumber(graph.inputs, numbers);
  Renumber(graph.outputs, numbers);
  return changed;
}

}  // namespace hone::graph

#include "client/network/onnx/prune.h"

#include <utility>
#include <vector>

namespace hone::onnx {

using graph::kNoValue;
using graph::ValueId;

void RemoveUnusedConstants(graph::Graph& graph) {
  std::vector<bool> used(graph.values.size());
  for (size_t id = 0; id < used.size(); ++id) used[id] = !graph.values[id].constant.has_value();
  for (const graph::Node& node : graph.nodes) {
    for (const ValueId id : node.inputs) {
      if (id != kNoValue) used[id] = true;
    }
  }
  for (const ValueId id : graph.outputs) used[id] = true;

  std::vector<ValueId> moved(graph.values.size(), kNoValue);
  std::vector<graph::Value> kept;
  for (size_t id = 0; id < used.size(); ++id) {
    if (!used[id]) continue;
    moved[id] = static_cast<ValueId>(kept.size());
    kept.push_back(std::move(graph.values[id]));
  }
  graph.values = std::move(kept);
  const auto renumber = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids) {
      if (id != kNoValue) id = moved[id];
    }
  };
  for (graph::Node& node : graph.nodes) {
    renumber(node.inputs);
    renumber(node.outputs);
  }
  renumber(graph.inputs);
  renumber(graph.outputs);
}

}  // namespace hone::onnx

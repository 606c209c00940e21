#include "client/network/graph/partition/fusion.h"

#include <algorithm>
#include <set>
#include <utility>

namespace hone::graph {

Fusion::Fusion(const Graph& graph, std::vector<NodeKind> kinds, int max_nodes)
    : graph_(graph),
      kinds_(std::move(kinds)),
      readers_(graph.Consumers()),
      producers_(graph.Producers()),
      max_nodes_(max_nodes),
      is_output_(graph.values.size()) {
  for (const ValueId id : graph.outputs) is_output_[id] = true;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    group_of_.push_back(static_cast<int>(n));
    groups_.push_back({static_cast<int>(n)});
  }
}

int Fusion::SoleReader(ValueId id) const {
  return is_output_[id] || readers_[id].size() != 1 ? -1 : readers_[id][0];
}

const TensorType& Fusion::TypeOf(int node) const {
  const std::vector<ValueId>& outputs = graph_.nodes[node].outputs;
  const auto wanted =
      std::find_if(outputs.begin(), outputs.end(), [](ValueId id) { return id != kNoValue; });
  return graph_.value(*wanted).type;
}

std::optional<ValueId> Fusion::ResultOf(int node) const {
  std::optional<ValueId> result;
  for (const int member : GroupOf(node)) {
    for (const ValueId id : graph_.nodes[member].outputs) {
      if (id == kNoValue) continue;
      if (is_output_[id]) return std::nullopt;
      if (std::all_of(readers_[id].begin(), readers_[id].end(),
                      [&](int reader) { return InOneGroup(reader, node); })) {
        continue;
      }
      if (result) return std::nullopt;
      result = id;
    }
  }
  return result;
}

std::optional<std::vector<int>> Fusion::Enclosed(ValueId id,
                                                 absl::FunctionRef<bool(int)> allowed) const {
  std::vector<int> nodes;
  std::set<int> pending(readers_[id].begin(), readers_[id].end());
  while (!pending.empty()) {
    // Nodes are numbered in topological order, so the other pending nodes come after this one.
    const int node = *pending.begin();
    pending.erase(pending.begin());
    if (!allowed(node) || nodes.size() >= max_nodes_) return std::nullopt;
    nodes.push_back(node);
    if (pending.empty()) return nodes;
    for (const ValueId output : graph_.nodes[node].outputs) {
      if (output == kNoValue) continue;
      if (is_output_[output]) return std::nullopt;
      pending.insert(readers_[output].begin(), readers_[output].end());
    }
  }
  return std::nullopt;
}

std::vector<int> Fusion::Successors(int group) const {
  std::vector<int> successors;
  for (const int node : groups_[group]) {
    for (const ValueId id : graph_.nodes[node].outputs) {
      if (id == kNoValue) continue;
      for (const int reader : readers_[id]) {
        if (group_of_[reader] != group) successors.push_back(group_of_[reader]);
      }
    }
  }
  return successors;
}

bool Fusion::Merge(const std::vector<int>& nodes) {
  std::set<int> merged;
  for (const int node : nodes) merged.insert(group_of_[node]);
  size_t size = 0;
  for (const int group : merged) size += groups_[group].size();
  if (size > max_nodes_) return false;
  // No path may leave the merged groups and return.
  std::set<int> visited;
  std::vector<int> left;
  const auto visit_successors = [&](int group) {
    for (const int successor : Successors(group)) {
      if (merged.contains(successor)) {
        if (!merged.contains(group)) return false;
      } else if (visited.insert(successor).second) {
        left.push_back(successor);
      }
    }
    return true;
  };
  for (const int group : merged) visit_successors(group);
  while (!left.empty()) {
    const int group = left.back();
    left.pop_back();
    if (!visit_successors(group)) return false;
  }
  const int first = *merged.begin();
  for (const int group : merged) {
    if (group == first) continue;
    for (const int node : groups_[group]) {
      groups_[first].push_back(node);
      group_of_[node] = first;
    }
    groups_[group].clear();
  }
  std::sort(groups_[first].begin(), groups_[first].end());
  return true;
}

std::vector<std::vector<int>> Fusion::Ordered() const {
  std::vector<int> awaited(groups_.size());  // the number of results that each group waits for
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (const int successor : Successors(static_cast<int>(g))) ++awaited[successor];
  }
  // Of the groups that can run, the one whose last node is first in the graph.
  std::set<std::pair<int, int>> ready;
  const auto add_if_ready = [&](int group) {
    if (awaited[group] == 0 && !groups_[group].empty()) {
      ready.emplace(groups_[group].back(), group);
    }
  };
  for (size_t g = 0; g < groups_.size(); ++g) add_if_ready(static_cast<int>(g));
  std::vector<std::vector<int>> ordered;
  while (!ready.empty()) {
    const int group = ready.begin()->second;
    ready.erase(ready.begin());
    ordered.push_back(groups_[group]);
    for (const int successor : Successors(group)) {
      if (--awaited[successor] == 0) add_if_ready(successor);
    }
  }
  return ordered;
}

}  // namespace hone::graph

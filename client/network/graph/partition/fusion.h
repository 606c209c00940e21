#ifndef HONE_CLIENT_NETWORK_GRAPH_PARTITION_FUSION_H_
#define HONE_CLIENT_NETWORK_GRAPH_PARTITION_FUSION_H_

#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/partition/node_kind.h"

namespace hone::graph {

// A division of a graph's nodes into groups, which the rules merge. At first each group has one
// node. Groups never depend on each other in a cycle, so they can run one after the other. The
// graph must outlive it.
class Fusion {
 public:
  // REQUIRES: one kind per node.
  Fusion(const Graph& graph, std::vector<NodeKind> kinds, int max_nodes);

  const Graph& graph() const { return graph_; }
  NodeKind kind(int node) const { return kinds_[node]; }
  // The nodes that read a value, in graph order.
  const std::vector<int>& Readers(ValueId id) const { return readers_[id]; }
  // The only node that reads a value; -1 if several do, or if the value is an output of the graph.
  int SoleReader(ValueId id) const;
  // The node that computes a value; -1 for inputs and constants.
  int Producer(ValueId id) const { return producers_[id]; }
  // The type of a node's first output.
  const TensorType& TypeOf(int node) const;

  // Whether the node is the only one of its group.
  bool IsAlone(int node) const { return groups_[group_of_[node]].size() == 1; }
  bool InOneGroup(int a, int b) const { return group_of_[a] == group_of_[b]; }
  // The nodes of the group that has this node, in the graph's order.
  const std::vector<int>& GroupOf(int node) const { return groups_[group_of_[node]]; }
  // The only value of the node's group that other groups read; nullopt if there are several or if
  // one is an output of the graph.
  std::optional<ValueId> ResultOf(int node) const;

  // The nodes from a value to the first node that is on all paths from the value (its only reader,
  // or the node where the paths from its readers meet), including that node. nullopt if a node is
  // not allowed, or if one before the last computes an output of the graph.
  std::optional<std::vector<int>> Enclosed(ValueId id, absl::FunctionRef<bool(int)> allowed) const;

  // Merges the groups of these nodes. Returns false, and changes nothing, if the group would depend
  // on itself through others or have too many nodes.
  bool Merge(const std::vector<int>& nodes);

  // All groups, in topological order.
  std::vector<std::vector<int>> Ordered() const;

 private:
  // The other groups that read results of a group.
  std::vector<int> Successors(int group) const;

  const Graph& graph_;
  const std::vector<NodeKind> kinds_;
  const std::vector<std::vector<int>> readers_;
  const std::vector<int> producers_;
  const size_t max_nodes_;
  std::vector<bool> is_output_;           // whether each value is an output of the graph
  std::vector<int> group_of_;             // the group of each node
  std::vector<std::vector<int>> groups_;  // empty if merged into another one
};

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PARTITION_FUSION_H_

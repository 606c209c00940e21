#ifndef HONE_COMMON_GRAPH_PARTITION_FUSION_H_
#define HONE_COMMON_GRAPH_PARTITION_FUSION_H_

#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/graph/graph.h"
#include "common/graph/partition/node_kind.h"

namespace hone::graph {

// The division of a graph's nodes into groups while rules merge them. At first each group
// has one node. The groups can always run one after the other: no two of them wait for each other.
// The graph must outlive it.
class Fusion {
 public:
  // REQUIRES: one kind per node.
  Fusion(const Graph& graph, std::vector<NodeKind> kinds, int max_nodes);

  const Graph& graph() const { return graph_; }
  NodeKind kind(int node) const { return kinds_[node]; }
  // The nodes that read a value, in their order.
  const std::vector<int>& Readers(ValueId id) const { return readers_[id]; }
  // The only node that reads a value; -1 if there are several, or if it is an output of the graph.
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
  // The only value of the group that other groups read; none if there are several or if one is an
  // output of the graph.
  std::optional<ValueId> ResultOf(int node) const;

  // The nodes from a value to the first node through which all that depends on the value goes: its
  // only reader, or the nodes between it and the node where the paths from its readers meet. None
  // if a node is not allowed, or if one before the last computes an output of the graph.
  std::optional<std::vector<int>> Enclosed(ValueId id, absl::FunctionRef<bool(int)> allowed) const;

  // Merges the groups of these nodes. Returns false, and changes nothing, if the group would depend
  // on itself through others or have too many nodes.
  bool Merge(const std::vector<int>& nodes);

  // All groups, in an order in which they can run.
  std::vector<std::vector<int>> Ordered() const;

 private:
  // The groups that read what a group computes, without itself.
  std::vector<int> Successors(int group) const;

  const Graph& graph_;
  const std::vector<NodeKind> kinds_;
  const std::vector<std::vector<int>> readers_;
  const std::vector<int> producers_;
  const size_t max_nodes_;
  std::vector<bool> is_output_;           // of values
  std::vector<int> group_of_;             // of nodes
  std::vector<std::vector<int>> groups_;  // empty after they were merged into another
};

}  // namespace hone::graph

#endif  // HONE_COMMON_GRAPH_PARTITION_FUSION_H_

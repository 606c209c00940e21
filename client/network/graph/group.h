#ifndef HONE_CLIENT_NETWORK_GRAPH_GROUP_H_
#define HONE_CLIENT_NETWORK_GRAPH_GROUP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"
#include "common/ir/workload.h"

namespace hone::graph {

// Nodes of a graph as one workload. The workload renames the graph's tensors, and gives scalars one
// dimension of extent 1.
struct Group {
  ir::Workload workload;
  std::vector<ValueId> inputs;   // in the order of the workload's inputs
  std::vector<ValueId> outputs;  // in the order of the workload's outputs
};

// Makes a workload of these nodes, which are in graph order. Its inputs are the values that the
// nodes read but do not compute; constants become constant inputs. Its outputs are the values that
// other nodes or the graph's outputs need. Stages that no output needs are left out. Errors are
// those of the operators, and of ir::Workload::Validate (too many tensors, an empty tensor).
absl::StatusOr<Group> MakeGroup(const Graph& graph, const std::vector<int>& nodes,
                                std::string name);

// A graph of this node alone, which may be unfinished: of its outputs, only those that are not
// kNoValue are wanted. They become new values and the outputs of the graph; the node's inputs
// become values and constants. Errors are those of Graph::AddNode.
absl::StatusOr<Graph> AloneInGraph(const Graph& graph, Node node);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_GROUP_H_

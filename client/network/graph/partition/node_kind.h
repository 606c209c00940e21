#ifndef HONE_CLIENT_NETWORK_GRAPH_PARTITION_NODE_KIND_H_
#define HONE_CLIENT_NETWORK_GRAPH_PARTITION_NODE_KIND_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"
#include "common/ir/workload.h"

namespace hone::graph {

// How a node accesses elements. The kind follows from the node's workload, except for aliases.
enum class NodeKind {
  kAlias,          // its results share memory with its inputs (views.h)
  kElementwise,    // an element depends only on elements at its own position, or broadcast ones
  kTransposition,  // permutes the dimensions of one tensor
  kRearrangement,  // reads elements at other positions: Slice, Concat, Gather, Pad
  kAnchor,         // reduces
};

// The kind of a workload; never kAlias.
NodeKind KindOf(const ir::Workload& workload);

// The kinds of all nodes. `alignment`: of PartitionOptions. Errors are those of MakeGroup.
absl::StatusOr<std::vector<NodeKind>> NodeKinds(const Graph& graph, int64_t alignment);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PARTITION_NODE_KIND_H_

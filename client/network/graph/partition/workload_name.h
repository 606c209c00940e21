#ifndef HONE_CLIENT_NETWORK_GRAPH_PARTITION_WORKLOAD_NAME_H_
#define HONE_CLIENT_NETWORK_GRAPH_PARTITION_WORKLOAD_NAME_H_

#include <string>
#include <vector>

#include "client/network/graph/graph.h"

namespace hone::graph {

// A name for the workload of these nodes that says what it computes: "conv2d_add_relu",
// "layer_norm". It depends only on operators and ranks.
std::string WorkloadName(const Graph& graph, const std::vector<int>& nodes);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PARTITION_WORKLOAD_NAME_H_

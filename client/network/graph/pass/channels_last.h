#ifndef HONE_CLIENT_NETWORK_GRAPH_PASS_CHANNELS_LAST_H_
#define HONE_CLIENT_NETWORK_GRAPH_PASS_CHANNELS_LAST_H_

#include <vector>

#include "absl/status/status.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/pass/layout_role.h"

namespace hone::graph {

// Gives the marked nodes channels last, and adds transpositions between them and the others. A
// tensor is transposed at most once; constants are stored in the new order. REQUIRES: no marked
// node is kFixed. Errors are those of the operators.
absl::Status WriteChannelsLast(Graph& graph, const std::vector<LayoutRole>& roles,
                               const std::vector<bool>& marked);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PASS_CHANNELS_LAST_H_

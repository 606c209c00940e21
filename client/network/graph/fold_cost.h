#ifndef HONE_CLIENT_NETWORK_GRAPH_FOLD_COST_H_
#define HONE_CLIENT_NETWORK_GRAPH_FOLD_COST_H_

#include "client/network/graph/operator_def.h"

namespace hone::graph {

// Estimates the work of computing a node with the interpreter: the elements of its constants and
// wanted results, and the points of its stages. Results are wanted if they are not kNoValue in the
// outputs of the node, which need not be values of the graph yet. `types`: the types of all
// results. REQUIRES: CanFold(), and no more outputs than types.
double FoldCost(const Graph& graph, const Node& node, const Types& types);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_FOLD_COST_H_

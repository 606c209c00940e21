#ifndef HONE_COMMON_GRAPH_FOLD_COST_H_
#define HONE_COMMON_GRAPH_FOLD_COST_H_

#include "common/graph/operator_def.h"

namespace hone::graph {

// Estimates the work of computing a node with the interpreter: the elements of its constants and
// results, and the points of its stages. `types`: the types of all its results. Only the first
// `outputs` results may be wanted. REQUIRES: CanFold().
double FoldCost(const Graph& graph, const Node& node, const Types& types, size_t outputs);

}  // namespace hone::graph

#endif  // HONE_COMMON_GRAPH_FOLD_COST_H_

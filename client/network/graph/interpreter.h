#ifndef HONE_CLIENT_NETWORK_GRAPH_INTERPRETER_H_
#define HONE_CLIENT_NETWORK_GRAPH_INTERPRETER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/operator_def.h"
#include "common/ir/interpreter.h"

namespace hone::graph {

// Runs a graph node by node, with ir::Interpret on each node's workload. This defines what a graph
// computes; it is slow. Inputs and outputs are in the order of graph.inputs and graph.outputs.
//
// InvalidArgument: wrong number or sizes of inputs. Other errors are those of MakeGroup and
// ir::Interpret.
absl::StatusOr<std::vector<ir::Scalars>> Interpret(const Graph& graph,
                                                   absl::Span<const ir::Scalars> inputs);

// Whether the outputs of a node are constant: all of its inputs are, or its operator reads only
// their types. False if the operator is unknown.
bool CanFold(const Graph& graph, const Node& node);

// Computes the wanted outputs of one node. REQUIRES: CanFold().
absl::StatusOr<std::vector<ConstantData>> Fold(const Graph& graph, const Node& node);

// Estimates the work of computing a node with the interpreter: the elements of its constants and
// wanted results, and the points of its stages. Results are wanted if they are not kNoValue in the
// outputs of the node, which need not be values of the graph yet. `types`: the types of all
// results. REQUIRES: CanFold(), and no more outputs than types.
double FoldCost(const Graph& graph, const Node& node, const Types& types);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_INTERPRETER_H_

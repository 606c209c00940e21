#ifndef HONE_CLIENT_NETWORK_GRAPH_PASS_EDIT_H_
#define HONE_CLIENT_NETWORK_GRAPH_PASS_EDIT_H_

#include <string>
#include <vector>

#include "client/network/graph/graph.h"

// Graph edits that several passes use.
namespace hone::graph {

// Removes a node whose only result equals `value`, and makes the readers of the result read
// `value`. If the result is an output of the graph, `value` takes its name; if `value` must keep
// its own name, because it is an input, a constant or another output of the graph, returns false
// and changes nothing.
//
// The node is only marked, so that indices stay valid; EraseRemoved() erases it.
bool ReplaceBy(Graph& graph, int node, ValueId value);
// Marks a node whose results are no longer needed.
void MarkRemoved(Node& node);
// Erases the marked nodes. Returns whether there were any.
bool EraseRemoved(Graph& graph);

// Returns `name`, with a number appended if a value already has this name.
std::string FreshName(const Graph& graph, const std::string& name);

// Adds a constant, under a name that begins with `name`.
ValueId AddConstant(Graph& graph, const std::string& name, const TensorType& type,
                    const std::vector<double>& elements);
ValueId AddConstant(Graph& graph, const std::string& name, const TensorType& type,
                    ConstantData data);
ValueId AddInts(Graph& graph, const std::string& name, const std::vector<int64_t>& elements);

// Reshapes a constant to `shape`, permutes its dimensions to `order`, and adds the result as a new
// constant. REQUIRES: the rank is at least 1.
ValueId AddPermuted(Graph& graph, ValueId constant, const std::vector<int64_t>& shape,
                    const std::vector<int64_t>& order);

// The elements of a constant, as numbers. REQUIRES: the value is a constant.
std::vector<double> Reals(const Graph& graph, ValueId id);

// Whether a value is an output of the graph.
bool IsOutput(const Graph& graph, ValueId id);
// Returns the node that computes a value, if the value has exactly one reader and is not an output
// of the graph; otherwise -1.
int PrivateProducer(const Graph& graph, ValueId id);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PASS_EDIT_H_

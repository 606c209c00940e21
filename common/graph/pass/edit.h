#ifndef HONE_COMMON_GRAPH_PASS_EDIT_H_
#define HONE_COMMON_GRAPH_PASS_EDIT_H_

#include <string>
#include <vector>

#include "common/graph/graph.h"

// What passes do to graphs.
namespace hone::graph {

// Removes a node whose only result equals another value, which everything then reads instead. An
// output of the graph keeps its name: the node that computes `value` computes it under that name.
// Returns false, and changes nothing, if `value` is an input, a constant or another output of the
// graph and must therefore keep its own name.
//
// The node is only marked, so that indices stay valid; EraseRemoved() erases it.
bool ReplaceBy(Graph& graph, int node, ValueId value);
// Marks a node that computes nothing that is needed.
void MarkRemoved(Node& node);
bool IsRemoved(const Node& node);
// Erases the marked nodes. Returns whether there were any.
bool EraseRemoved(Graph& graph);

// `name`, with a number if a value has this name already.
std::string FreshName(const Graph& graph, const std::string& name);

// Adds a constant, under a name that begins with `name`.
ValueId AddConstant(Graph& graph, const std::string& name, const TensorType& type,
                    const std::vector<double>& elements);
ValueId AddConstant(Graph& graph, const std::string& name, const TensorType& type,
                    ConstantData data);
ValueId AddInts(Graph& graph, const std::string& name, const std::vector<int64_t>& elements);

// Adds a constant with the elements of another one, seen in this shape, in another order of its
// dimensions. REQUIRES: the rank is at least 1.
ValueId AddPermuted(Graph& graph, ValueId constant, const std::vector<int64_t>& shape,
                    const std::vector<int64_t>& order);

// The elements of a constant of numbers. REQUIRES: it is a constant.
std::vector<double> Reals(const Graph& graph, ValueId id);

// The node that computes a value which it alone needs: an only reader reads the value, and it is no
// output of the graph. -1 if there is none.
int PrivateProducer(const Graph& graph, ValueId id);

}  // namespace hone::graph

#endif  // HONE_COMMON_GRAPH_PASS_EDIT_H_

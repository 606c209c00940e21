#ifndef HONE_CLIENT_NETWORK_GRAPH_PARTITION_RULES_H_
#define HONE_CLIENT_NETWORK_GRAPH_PARTITION_RULES_H_

#include "client/network/graph/partition/fusion.h"

// The rules that merge the nodes of a graph into groups, in the order in which they are applied.
// Each considers the nodes that no earlier rule has merged, and the groups that earlier rules made.
namespace hone::graph {

// Merges softmax(f(A·B))·C, where f is elementwise, such as a scale or a mask.
void FuseAttention(Fusion& fusion);
// Merges the reductions of a tensor with the elementwise nodes that have the shape of the tensor or
// of the reduced tensor. These are layer norms, softmax and other normalizations that a model
// spells out.
void FuseNormalizations(Fusion& fusion);
// Merges each anchor (see node_kind.h) with the elementwise nodes and transpositions after it.
// Starts with the last anchor of the graph, so that a sum of two branches joins the later anchor,
// before which the other branch has already run.
void FuseEpilogues(Fusion& fusion);
// Merges each transposition with the node that reads it, if that is a product, an elementwise node,
// or a convolution of an image with few channels. Merges each conversion to a wider type, such as
// DequantizeLinear, with its only reader, also if that is a transposition that was merged so.
void FuseOperands(Fusion& fusion);
// Merges each remaining node with the elementwise nodes and transpositions after it.
void FuseChains(Fusion& fusion);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PARTITION_RULES_H_

#ifndef HONE_COMMON_GRAPH_PARTITION_RULES_H_
#define HONE_COMMON_GRAPH_PARTITION_RULES_H_

#include "common/graph/partition/fusion.h"

// The rules that merge the nodes of a graph, in the order in which they apply. Each looks at nodes
// that are alone in their groups and at the groups that earlier rules made.
namespace hone::graph {

// softmax(f(A·B))·C, where f is elementwise (a scale, a mask), as one group.
void FuseAttention(Fusion& fusion);
// Reductions of a tensor and elementwise nodes of it and of the reduced tensor: layer norms,
// softmax and other normalizations that a model spells out.
void FuseNormalizations(Fusion& fusion);
// Anchors take the elementwise nodes and transpositions that follow. The last anchor of the graph
// comes first: the sum of two branches then joins the later anchor, when the other branch has run.
void FuseEpilogues(Fusion& fusion);
// Transpositions are merged into the product, the elementwise node or the convolution of an image
// with few channels that reads them. Conversions to a wider type, such as DequantizeLinear, are
// merged into a single reader.
void FuseOperands(Fusion& fusion);
// The remaining nodes take the elementwise nodes and transpositions that follow.
void FuseChains(Fusion& fusion);

// Whether the node converts its first input to a type with more bytes.
bool Widens(const Fusion& fusion, int node);
// Whether the node is a product of matrices.
bool IsProduct(const Fusion& fusion, int node);
// Whether the node reads an operand equally fast in any order of its dimensions: it is a product of
// matrices, or a convolution of an image with few channels.
bool ReadsAnyOrder(const Fusion& fusion, int node, ValueId operand);

}  // namespace hone::graph

#endif  // HONE_COMMON_GRAPH_PARTITION_RULES_H_

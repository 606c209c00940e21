#ifndef HONE_COMMON_GRAPH_PASS_LAYOUT_ROLE_H_
#define HONE_COMMON_GRAPH_PASS_LAYOUT_ROLE_H_

#include <vector>

#include "common/graph/graph.h"

namespace hone::graph {

// What a node does with the dimensions of images, [n, c, …].
enum class LayoutRole {
  kFixed,        // needs channels first
  kWindow,       // has the attribute channels_last
  kElementwise,  // may have any order of dimensions
  kAlongAxis,    // Concat and Split, with the attribute axis
  kReduction,    // with constant axes; its result has the same rank
};

// The roles of all nodes. Nodes with a result that nothing needs are kFixed.
std::vector<LayoutRole> LayoutRoles(const Graph& graph);

// Whether an input of a node that is not kFixed is an image that has the layout of the node. The
// others are single elements, weights, axes and the like.
bool IsImage(const Graph& graph, const Node& node, LayoutRole role, size_t input);

}  // namespace hone::graph

#endif  // HONE_COMMON_GRAPH_PASS_LAYOUT_ROLE_H_

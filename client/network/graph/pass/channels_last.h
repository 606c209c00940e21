#ifndef HONE_CLIENT_NETWORK_GRAPH_PASS_CHANNELS_LAST_H_
#define HONE_CLIENT_NETWORK_GRAPH_PASS_CHANNELS_LAST_H_

#include <vector>

#include "absl/status/status.h"
#include "client/network/graph/graph.h"

namespace hone::graph {

// What a node does with the dimensions of images, [n, c, …].
enum class LayoutRole {
  kFixed,        // needs channels first
  kWindow,       // has the attribute channels_last
  kElementwise,  // may have any order of dimensions
  kAlongAxis,    // Concat and Split, with the attribute axis
  kReduction,    // with constant axes; its result has the same rank
  kPad,          // by constant numbers for all dimensions
};

// The roles of all nodes. Nodes with a result that is not needed are kFixed.
std::vector<LayoutRole> LayoutRoles(const Graph& graph);

// Whether an input is an image in the layout of its node. Other inputs are single elements,
// weights, axes and the like. REQUIRES: the node is not kFixed.
bool IsImage(const Graph& graph, const Node& node, LayoutRole role, size_t input);

// Gives the marked nodes channels last, and adds transpositions between them and the others. A
// tensor is transposed at most once; constants are stored in the new order. REQUIRES: no marked
// node is kFixed. Errors are those of the operators.
absl::Status WriteChannelsLast(Graph& graph, const std::vector<LayoutRole>& roles,
                               const std::vector<bool>& marked);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PASS_CHANNELS_LAST_H_

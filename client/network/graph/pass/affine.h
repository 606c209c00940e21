#ifndef HONE_CLIENT_NETWORK_GRAPH_PASS_AFFINE_H_
#define HONE_CLIENT_NETWORK_GRAPH_PASS_AFFINE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "client/network/graph/graph.h"

namespace hone::graph {

// A node that multiplies each channel of a tensor by a constant and adds another.
struct Affine {
  ValueId input = kNoValue;
  std::vector<double> scale, shift;  // per channel
};

// Returns the node as an Affine, computed in f64, with the channels along `axis` of its result.
// nullopt if it is another kind of node, or its constants vary within a channel or are not finite.
std::optional<Affine> AffineOf(const Graph& graph, const Node& node, int64_t axis);

// Returns the element of a constant for each channel of a tensor of this shape, to which it
// broadcasts. nullopt if the value is not constant or varies within a channel.
std::optional<std::vector<double>> PerChannel(const Graph& graph, ValueId id,
                                              const std::vector<int64_t>& shape, int64_t axis);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PASS_AFFINE_H_

#ifndef HONE_COMMON_GRAPH_PASS_AFFINE_H_
#define HONE_COMMON_GRAPH_PASS_AFFINE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/graph/graph.h"

namespace hone::graph {

// A node that multiplies each channel of a tensor by a constant and adds another.
struct Affine {
  ValueId input = kNoValue;
  std::vector<double> scale, shift;  // per channel
};

// The node as such, with the channels along an axis of its result. Computed in f64. None if it is
// another node, if its constants differ within a channel, or if one is not finite.
std::optional<Affine> AffineOf(const Graph& graph, const Node& node, int64_t axis);

// The elements of a constant per channel of a tensor of this shape, to which it broadcasts. None if
// it is not constant or differs within a channel.
std::optional<std::vector<double>> PerChannel(const Graph& graph, ValueId id,
                                              const std::vector<int64_t>& shape, int64_t axis);

}  // namespace hone::graph

#endif  // HONE_COMMON_GRAPH_PASS_AFFINE_H_

#ifndef HONE_CLIENT_NETWORK_GRAPH_PASS_ZERO_POINT_SHIFT_H_
#define HONE_CLIENT_NETWORK_GRAPH_PASS_ZERO_POINT_SHIFT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/network/graph/node_view.h"

namespace hone::graph {

// What a zero point of the image adds to the sums of products of a convolution: the zero point
// times the sum of the weights. Padding is left out of the sums, so this depends on the position
// along the dimensions that are padded.
struct ZeroPointShift {
  std::vector<int64_t> shape;  // [channels, 1, width], for example, if only the width is padded
  std::vector<double> elements;
};

// `convolution`: a Conv with channels first. `weights`: the elements of its kernels, as integers.
// InvalidArgument: the node is not a legal convolution.
absl::StatusOr<ZeroPointShift> ShiftOf(const NodeView& convolution,
                                       const std::vector<double>& weights, double zero_point);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PASS_ZERO_POINT_SHIFT_H_

#ifndef HONE_CLIENT_NETWORK_GRAPH_PASS_PADDED_IMAGE_H_
#define HONE_CLIENT_NETWORK_GRAPH_PASS_PADDED_IMAGE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"

namespace hone::graph {

// A convolution of bytes whose image is padded by another node.
struct PaddedImage {
  Node convolution;            // without padding; its first input is the padded image
  ValueId weights = kNoValue;  // bytes; the last dimension may have more taps, which are zero
};

// Whether an input of the graph, an image with few channels, is quantized for a convolution alone.
// Then adds nodes that pad the image with zeros and quantize it, and returns the convolution of the
// result; otherwise returns nullopt. The convolution then needs no condition for its taps, and what
// a zero point adds to its sums does not depend on the position. Instructions for dot products
// read four taps of a row together, so the kernels get a multiple of four.
// `convolution`: a Conv of an image that a DequantizeLinear computes from `bytes`. `weights`: the
// constant bytes of its kernels, without a zero point.
absl::StatusOr<std::optional<PaddedImage>> PadInput(Graph& graph, const Node& convolution,
                                                    ValueId bytes, ValueId weights);

// As above for any image, which is padded with the constant `zero_point` after it was quantized.
// Returns nullopt if there is no padding, or if it takes less time to read what the zero point adds
// to the sums at each position than to compute sums with the padding.
absl::StatusOr<std::optional<PaddedImage>> PadBytes(Graph& graph, const Node& convolution,
                                                    ValueId bytes, ValueId weights,
                                                    ValueId zero_point);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PASS_PADDED_IMAGE_H_

#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_WINDOW_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_WINDOW_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/node_view.h"

namespace hone::graph {

// An attribute of convolutions and pooling that ONNX does not have: if it is 1, images are [n, …,
// c] instead of [n, c, …], and the kernels of a Conv are […, ci/groups, co] instead of [co,
// ci/groups, …]. AssignLayouts() (pass/passes.h) sets it.
inline constexpr char kChannelsLast[] = "channels_last";

// An attribute of a Conv that ONNX does not have: if it is g, the convolution reads the image as if
// its channels were shuffled. Channel c is then channel c % g · channels / g + c / g of the image.
// FoldShuffles() (pass/passes.h) sets it.
inline constexpr char kShuffledGroups[] = "shuffled_groups";

// Whether the second input of an operator is a convolution kernel.
inline bool HasKernels(absl::string_view op) { return op == "Conv" || op == "ConvInteger"; }

inline absl::StatusOr<bool> HasChannelsLast(const NodeView& node) {
  const absl::StatusOr<int64_t> last = node.Int(kChannelsLast, 0);
  if (!last.ok()) return last.status();
  return *last != 0;
}

// Moves the entry of the channels, at index 1, to the end.
template <typename T>
void MoveChannelsLast(std::vector<T>& dimensions) {
  std::rotate(dimensions.begin() + 1, dimensions.begin() + 2, dimensions.end());
}

// How a window slides along one dimension of an image: output o reads the elements o·stride +
// tap·dilation − begin, for each tap of the kernel.
struct Window {
  int64_t extent, kernel, stride, dilation;
  int64_t begin, end;  // the padding before and after the image
  int64_t outputs;

  // Whether a tap of an output reads an element of the image.
  bool IsInside(int64_t output, int64_t tap) const {
    const int64_t element = output * stride + tap * dilation - begin;
    return 0 <= element && element < extent;
  }
  // The element that a tap reads: "2*h + r - 1".
  std::string At(absl::string_view position, absl::string_view tap) const;
  // Appends a guard that the tap is in the image, extended by `before` and `after` elements, unless
  // that always holds.
  void Guard(absl::string_view position, absl::string_view tap, std::vector<std::string>& guards,
             int64_t before = 0, int64_t after = 0) const;
};

// Returns the windows of a convolution or pooling over the dimensions of the image in input 0, for
// kernels of these extents and the attributes strides, dilations, pads, auto_pad and, for pooling,
// ceil_mode. InvalidArgument: they do not fit.
absl::StatusOr<std::vector<Window>> Windows(const NodeView& node,
                                            const std::vector<int64_t>& kernel);

// Reads a list attribute with one number per dimension. InvalidArgument: it has another length, or
// a number below `least` or too large.
absl::StatusOr<std::vector<int64_t>> PerDimension(const NodeView& node, absl::string_view name,
                                                  size_t dimensions, int64_t default_value,
                                                  int64_t least);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_WINDOW_H_

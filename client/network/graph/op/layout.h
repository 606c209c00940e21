#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_LAYOUT_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_LAYOUT_H_

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/node_view.h"

namespace hone::graph {

// An attribute of convolutions and pooling that ONNX does not have: if it is 1, images are [n, …,
// c] instead of [n, c, …], and the kernels of a Conv are […, ci/groups, co] instead of [co,
// ci/groups, …]. AssignLayouts() (pass/passes.h) sets it.
inline constexpr char kChannelsLast[] = "channels_last";

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

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_LAYOUT_H_

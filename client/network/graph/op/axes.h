#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_AXES_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_AXES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/stage_writer.h"

namespace hone::graph {

// Returns an axis of a tensor of this rank as a number from 0 on; negative values count from the
// end. InvalidArgument, naming the node: there is no such axis.
absl::StatusOr<int64_t> AxisOf(const NodeView& node, int64_t axis, int64_t rank);
// The same for a list. InvalidArgument: an axis occurs twice.
absl::StatusOr<std::vector<int64_t>> AxesOf(const NodeView& node, std::vector<int64_t> axes,
                                            int64_t rank);
// Returns the axes in an optional constant input; all axes if the input is absent.
absl::StatusOr<std::vector<int64_t>> AxesInput(const NodeView& node, int input, int64_t rank);

// Returns the shape to which NumPy broadcasts two shapes. InvalidArgument, naming the node: the
// shapes do not broadcast.
absl::StatusOr<std::vector<int64_t>> Broadcast(const NodeView& node, const std::vector<int64_t>& a,
                                               const std::vector<int64_t>& b);

// The element of an input of shape `shape` that broadcasting pairs with the element of output 0 at
// `axes`.
std::string BroadcastElement(StageWriter& writer, int input, const std::vector<int64_t>& shape,
                             const std::vector<std::string>& axes);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_AXES_H_

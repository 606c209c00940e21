#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_BROADCAST_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_BROADCAST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/stage_writer.h"

namespace hone::graph {

// Returns the shape to which NumPy broadcasts two shapes. InvalidArgument, naming the node: the
// shapes do not broadcast.
absl::StatusOr<std::vector<int64_t>> Broadcast(const NodeView& node, const std::vector<int64_t>& a,
                                               const std::vector<int64_t>& b);

// The element of an input of shape `shape` that broadcasting pairs with the element of output 0 at
// `axes`.
std::string BroadcastElement(StageWriter& writer, int input, const std::vector<int64_t>& shape,
                             const std::vector<std::string>& axes);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_BROADCAST_H_

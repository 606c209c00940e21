#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_GATHER_SCATTER_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_GATHER_SCATTER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/node_view.h"

namespace hone::graph {

// Indices that a node looks up when the network runs: every element of `indices` at the position
// `column` of a row of `columns` elements must be at least -extent, or 0, and less than extent.
struct IndexRange {
  ValueId indices = kNoValue;
  int64_t extent = 0;
  int64_t column = 0, columns = 1;
  bool from_end = true;  // whether -extent to -1 are legal
};

// The ranges of a node's indices that are not constant. Kernels clamp an index that is out of range
// (Gather, GatherElements, ReverseSequence, RotaryEmbedding) or ignore its update (ScatterElements,
// ScatterND, TensorScatter), where ONNX has an error. REQUIRES: the node is legal.
std::vector<IndexRange> IndexRanges(const Graph& graph, const Node& node);

// Checks the indices of an input if they are constant. InvalidArgument, naming the node: one is
// less than `least`, or not less than `extent`.
absl::Status CheckConstantIndices(const NodeView& node, int input, int64_t least, int64_t extent);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_GATHER_SCATTER_H_

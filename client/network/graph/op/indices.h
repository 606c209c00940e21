#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_INDICES_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_INDICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/stage_writer.h"

// Inputs whose elements are indices into a dimension of another tensor. Negative indices count from
// its end.
namespace hone::graph {

// Checks the type of the indices. InvalidArgument, naming the node: it is neither i32 nor i64.
absl::Status NeedIndices(const NodeView& node, int input);
// Checks the indices if they are constant. InvalidArgument, naming the node: one is out of range.
absl::Status CheckConstantIndices(const NodeView& node, int input, int64_t extent);

// Returns a formula for an element of the input as a non-negative index into a dimension of this
// extent. Declares the extent as the bound of the input.
std::string PlaceAt(const NodeView& node, StageWriter& writer, int input,
                    const std::vector<std::string>& element, int64_t extent);

// Indices that a node looks up when the network runs: every element of `indices` at the position
// `column` of a row of `columns` elements must be at least -extent and less than extent.
struct IndexRange {
  ValueId indices = kNoValue;
  int64_t extent = 0;
  int64_t column = 0, columns = 1;
};

// The ranges of a node's indices that are not constant. Kernels clamp an index that is out of range
// (Gather, GatherElements) or ignore its update (ScatterElements, ScatterND), where ONNX has an
// error. REQUIRES: the node is legal.
std::vector<IndexRange> IndexRanges(const Graph& graph, const Node& node);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_INDICES_H_

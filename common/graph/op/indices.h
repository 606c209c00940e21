#ifndef HONE_COMMON_GRAPH_OP_INDICES_H_
#define HONE_COMMON_GRAPH_OP_INDICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/graph/node_view.h"
#include "common/graph/stage_writer.h"

// Inputs whose elements are places in another tensor. Negative ones count from the end of the
// dimension.
namespace hone::graph {

// InvalidArgument, with the node's name: the elements of the input are neither i32 nor i64.
absl::Status NeedIndices(const NodeView& node, int input);
// InvalidArgument, with the node's name: a constant index is not one of a dimension of this extent.
absl::Status CheckConstantIndices(const NodeView& node, int input, int64_t extent);

// The place that an element of the input gives in a dimension of this extent, at least 0. Declares
// the extent as the bound of the input.
std::string PlaceAt(const NodeView& node, StageWriter& writer, int input,
                    const std::vector<std::string>& element, int64_t extent);

}  // namespace hone::graph

#endif  // HONE_COMMON_GRAPH_OP_INDICES_H_

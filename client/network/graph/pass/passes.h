#ifndef HONE_CLIENT_NETWORK_GRAPH_PASS_PASSES_H_
#define HONE_CLIENT_NETWORK_GRAPH_PASS_PASSES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/network/graph/graph.h"

// Transformations of a graph that keep what it computes: its inputs and outputs, their names and
// types, and their elements. (FoldBatchNorm() and AssignLayouts() change rounding.) Each returns
// whether it changed the graph. REQUIRES: Graph::Verify() accepts the graph; it then also accepts
// the result.
namespace hone::graph {

// Computes nodes whose inputs are constant. Keeps nodes whose results have more elements than the
// limit, nodes that need much work, and nodes that the interpreter cannot run.
absl::StatusOr<bool> FoldConstants(Graph& graph, int64_t max_elements = int64_t{1} << 20);

// Removes nodes, outputs of nodes and values that no output of the graph depends on. The inputs of
// the graph stay.
absl::StatusOr<bool> RemoveDead(Graph& graph);

// Removes nodes whose result is their first input: Identity, Dropout, a Cast to the same type, and
// a Reshape, Transpose, Expand, Tile, Pad, Slice or Concat that changes nothing.
absl::StatusOr<bool> RemoveIdentity(Graph& graph);

// Folds constants per channel into the weights and the bias of the product before them:
// BatchNormalization, Mul, Div, Add and Sub after Conv, ConvTranspose, Gemm and MatMul. Computes in
// f64 and rounds once.
absl::StatusOr<bool> FoldBatchNorm(Graph& graph);

// Replaces a Pad by the padding attributes of its reader: zeros for a Conv or AveragePool, -inf for
// a MaxPool.
absl::StatusOr<bool> FoldPadding(Graph& graph);

// Makes convolutions read the channels of an image in the order of a channel shuffle (Reshape,
// Transpose, Reshape), instead of moving them. Depthwise convolutions and activations in between
// work on the channels before the shuffle.
absl::StatusOr<bool> FoldShuffles(Graph& graph);

// Quantizes to u8 instead of i8 where the bytes are only dequantized, because x86 instructions
// multiply u8 by i8. The zero point grows by 128, so the bytes stand for the same numbers.
absl::StatusOr<bool> UseUnsignedBytes(Graph& graph);

// Computes a Conv, MatMul or Gemm of dequantized u8 and i8 tensors as a product of integers and
// multiplies the sums by the scales. Scales and zero points must be constant.
absl::StatusOr<bool> UseIntegerProducts(Graph& graph);

// Divides the factor of an integer sum by the scale of the QuantizeLinear after it, whose scale
// becomes 1.
absl::StatusOr<bool> FoldScale(Graph& graph);

// Makes a node that moves elements or takes maxima work on bytes, if the DequantizeLinear before it
// and the QuantizeLinear after it have the same scale and zero point. Removes such a pair if there
// is nothing in between.
absl::StatusOr<bool> SkipDequantization(Graph& graph);

// Replaces a Reshape, Flatten, Squeeze or Unsqueeze after another one by a Reshape of the first
// tensor.
absl::StatusOr<bool> MergeReshapes(Graph& graph);

// Replaces a Transpose after another one by a Transpose of the first tensor, and a Transpose that
// moves only dimensions of extent 1 by a Reshape.
absl::StatusOr<bool> MergeTransposes(Graph& graph);

// Removes nodes that compute what an earlier node computes, and constants that are equal to an
// earlier one.
absl::StatusOr<bool> ShareCommonSubexpressions(Graph& graph);

// Gives convolutions, pooling and what is between them channels last ([n, h, w, c]) where that is
// faster, with transpositions in between (op/window.h). The choice minimizes the estimated time
// exactly (min_cut.h). Does nothing if the graph already has such nodes.
absl::StatusOr<bool> AssignLayouts(Graph& graph);

// Makes a Concat of equal images with channels last join them along a new dimension, [1, parts, h,
// w, c], instead of along the channels. The parts are then views of one memory, and no kernel
// copies them. A convolution of the joined image reduces over the new dimension, too.
absl::StatusOr<bool> JoinAlongDepth(Graph& graph);

// Applies the passes until none changes the graph, then the layout passes once.
absl::Status Optimize(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_PASS_PASSES_H_

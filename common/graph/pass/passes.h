#ifndef HONE_COMMON_GRAPH_PASS_PASSES_H_
#define HONE_COMMON_GRAPH_PASS_PASSES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/graph/graph.h"

// Transformations of a graph that keep what it computes: its inputs and outputs, their names and
// types, and their elements. FoldBatchNorm() and AssignLayouts() round differently. Each returns
// whether it changed the graph. REQUIRES: Graph::Verify() accepts the graph; it accepts the result,
// too.
namespace hone::graph {

// Computes nodes whose inputs are constant. Results of more elements than the limit, and nodes that
// the interpreter cannot run, stay nodes.
absl::StatusOr<bool> FoldConstants(Graph& graph, int64_t max_elements = int64_t{1} << 20);

// Removes nodes, outputs of nodes and values that no output of the graph depends on. The inputs of
// the graph stay.
absl::StatusOr<bool> RemoveDead(Graph& graph);

// Removes nodes whose result is their first input: Identity, Dropout, a Cast to the same type, and
// a Reshape, Transpose, Expand, Tile, Pad, Slice or Concat that changes nothing.
absl::StatusOr<bool> RemoveIdentity(Graph& graph);

// Multiplies and adds constants per channel in the weights and the bias of the product before:
// BatchNormalization, Mul, Div, Add and Sub after Conv, ConvTranspose, Gemm and MatMul. Computes in
// f64 and rounds once.
absl::StatusOr<bool> FoldBatchNorm(Graph& graph);

// Removes a Pad by zeros before a Conv or AveragePool, and by -inf before a MaxPool, which pad
// themselves.
absl::StatusOr<bool> FoldPadding(Graph& graph);

// Quantizes to u8 instead of i8 where the bytes are only dequantized: instructions of x86 multiply
// u8 by i8. The zero point grows by 128, so the numbers stay.
absl::StatusOr<bool> UseUnsignedBytes(Graph& graph);

// Computes a Conv, MatMul or Gemm of dequantized u8 and i8 tensors as a product of integers and
// multiplies the sums by the scales. Scales and zero points must be constant.
absl::StatusOr<bool> UseIntegerProducts(Graph& graph);

// Moves elements and takes their maxima as bytes where a DequantizeLinear before and a
// QuantizeLinear after have the same scale and zero point, and removes such a pair with nothing
// between.
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
// faster, with transpositions in between (op/layout.h). The choice is exact for its estimates of
// times (min_cut.h). Does nothing if the graph has such nodes already.
absl::StatusOr<bool> AssignLayouts(Graph& graph);

// Joins equal images with channels last along a new dimension instead of along the channels,
// [1, parts, h, w, c]. The parts are then views of one memory, and no kernel copies them. A
// convolution of the joined image gets this dimension as a third one, which its kernel covers.
absl::StatusOr<bool> JoinAlongDepth(Graph& graph);

// Applies all passes until none changes the graph, and those of layouts once.
absl::Status Optimize(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMMON_GRAPH_PASS_PASSES_H_

#ifndef HONE_CLIENT_NETWORK_GRAPH_OP_FAMILIES_H_
#define HONE_CLIENT_NETWORK_GRAPH_OP_FAMILIES_H_

#include "absl/types/span.h"
#include "client/network/graph/operator_def.h"

// The operators by family, one source each. operator_def.cc collects them.
namespace hone::graph {

absl::Span<const OperatorDef> ActivationOperators();
absl::Span<const OperatorDef> AttentionOperators();
absl::Span<const OperatorDef> BinaryOperators();
absl::Span<const OperatorDef> ConcatOperators();
absl::Span<const OperatorDef> ConstantOperators();
absl::Span<const OperatorDef> ConvolutionOperators();
absl::Span<const OperatorDef> EinsumOperators();
absl::Span<const OperatorDef> GatherScatterOperators();
absl::Span<const OperatorDef> GemmOperators();
absl::Span<const OperatorDef> MatMulOperators();
absl::Span<const OperatorDef> NormalizationOperators();
absl::Span<const OperatorDef> PadOperators();
absl::Span<const OperatorDef> PoolingOperators();
absl::Span<const OperatorDef> QuantizedOperators();
absl::Span<const OperatorDef> QuantizedWeightsOperators();
absl::Span<const OperatorDef> RecurrentOperators();
absl::Span<const OperatorDef> ReductionOperators();
absl::Span<const OperatorDef> RepeatOperators();
absl::Span<const OperatorDef> ReshapeTransposeOperators();
absl::Span<const OperatorDef> ResizeOperators();
absl::Span<const OperatorDef> SelectionOperators();
absl::Span<const OperatorDef> SliceOperators();
absl::Span<const OperatorDef> SoftmaxOperators();
absl::Span<const OperatorDef> TopKOperators();
absl::Span<const OperatorDef> TriangleOperators();
absl::Span<const OperatorDef> UnaryOperators();
absl::Span<const OperatorDef> VariadicOperators();

}  // namespace hone::graph

#endif  // HONE_CLIENT_NETWORK_GRAPH_OP_FAMILIES_H_

#ifndef HONE_CLIENT_NETWORK_ONNX_COMPOSITE_H_
#define HONE_CLIENT_NETWORK_ONNX_COMPOSITE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/network/onnx/graph_builder.h"
#include "client/network/onnx/opset.h"
#include "client/network/onnx/rewrite.h"

namespace hone::onnx {

// The largest number of tokens whose positions the importer makes.
inline constexpr int64_t kMaxPositions = int64_t{1} << 24;

// The values of the outputs of a model's node; kNoValue for those that are not wanted.
using Composed = absl::StatusOr<std::vector<graph::ValueId>>;

// An operator that becomes nodes of several others: Attention of ONNX, and operators of ONNX
// Runtime's domain com.microsoft.
struct Composite {
  absl::string_view name;      // see OperatorName()
  int min_inputs, max_inputs;  // inputs beyond the minimum are optional
  int outputs;                 // the last ones are optional
  // Adds the nodes. InvalidArgument, Unimplemented, FailedPrecondition: the node is not legal, has
  // a form that Hone lacks, or an input that must be constant is not. The messages name the node.
  // The caller has checked the number of inputs.
  Composed (*compose)(Rewrite& rewrite);
  absl::string_view limits = "";  // as in graph::OperatorDef
};

absl::Span<const Composite> Composites();
// Returns null if there is none of this name.
const Composite* FindComposite(absl::string_view name);

// Adds the nodes that a node becomes. Errors are those of Composite::compose, and InvalidArgument
// if the node has too few or too many inputs or outputs.
Composed Compose(const Composite& composite, VersionedNode& node, GraphBuilder& builder);

// attention_operators.cc
Composed ComposeAttention(Rewrite& rewrite);
Composed ComposeGroupQueryAttention(Rewrite& rewrite);
Composed ComposeMultiHeadAttention(Rewrite& rewrite);

// matmul_nbits.cc
Composed ComposeMatMulNBits(Rewrite& rewrite);

}  // namespace hone::onnx

#endif  // HONE_CLIENT_NETWORK_ONNX_COMPOSITE_H_

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/network/onnx/compose/attention.h"
#include "client/network/onnx/compose/composition.h"
#include "common/base/status_macros.h"

// Operators of ONNX Runtime's domain com.microsoft, and attention.
namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::NodeView;
using graph::ValueId;
using PlainAttributes = std::map<std::string, graph::Attribute>;

// The attributes of the node with these names.
PlainAttributes Kept(Rewrite& rewrite, const std::vector<std::string>& names) {
  PlainAttributes kept;
  for (const std::string& name : names) {
    if (auto value = rewrite.Take(name)) kept.emplace(name, std::move(*value));
  }
  return kept;
}

// One output, which `op` computes from values.
Composed Single(Rewrite& rewrite, absl::string_view op, std::vector<ValueId> inputs,
                PlainAttributes attributes = {}) {
  HONE_ASSIGN_OR_RETURN(const ValueId result,
                        rewrite.Apply(op, std::move(inputs), std::move(attributes)));
  return std::vector{result};
}

// The sum of the values that are present.
absl::StatusOr<ValueId> SumOfPresent(Rewrite& rewrite, ValueId sum,
                                     const std::vector<ValueId>& more) {
  for (const ValueId each : more) {
    if (each == kNoValue) continue;
    HONE_ASSIGN_OR_RETURN(sum, rewrite.Apply("Add", {sum, each}));
  }
  return sum;
}

Composed ComposeGelu(Rewrite& rewrite) { return Single(rewrite, "Gelu", {rewrite.input(0)}); }

Composed ComposeBiasGelu(Rewrite& rewrite) {
  HONE_ASSIGN_OR_RETURN(const ValueId sum,
                        SumOfPresent(rewrite, rewrite.input(0), {rewrite.input(1)}));
  return Single(rewrite, "Gelu", {sum});
}

Composed ComposeFastGelu(Rewrite& rewrite) {
  HONE_ASSIGN_OR_RETURN(const ValueId sum,
                        SumOfPresent(rewrite, rewrite.input(0), {rewrite.input(1)}));
  return Single(rewrite, "Gelu", {sum}, {{"approximate", std::string("tanh")}});
}

Composed ComposeQuickGelu(Rewrite& rewrite) {
  HONE_ASSIGN_OR_RETURN(const double alpha, rewrite.view().Float("alpha", 1.702));
  return Single(rewrite, "Swish", {rewrite.input(0)}, {{"alpha", alpha}});
}

absl::StatusOr<ValueId> MatrixTransposed(Rewrite& rewrite, ValueId matrix) {
  std::vector<int64_t> permutation;
  const auto rank = static_cast<int64_t>(rewrite.TypeOf(matrix).shape.size());
  for (int64_t d = 0; d < rank; ++d) permutation.push_back(d);
  if (rank > 1) std::swap(permutation[rank - 1], permutation[rank - 2]);
  return rewrite.Apply("Transpose", {matrix}, {{"perm", permutation}});
}

Composed ComposeFusedMatMul(Rewrite& rewrite) {
  const NodeView view = rewrite.view();
  for (const char* const name : {"transBatchA", "transBatchB"}) {
    HONE_ASSIGN_OR_RETURN(const int64_t transposes, view.Int(name, 0));
    if (transposes != 0) return view.UnimplementedError(absl::StrCat(name, " is not supported"));
  }
  HONE_ASSIGN_OR_RETURN(const double alpha, view.Float("alpha", 1));
  ValueId operands[2] = {rewrite.input(0), rewrite.input(1)};
  for (const int i : {0, 1}) {
    HONE_ASSIGN_OR_RETURN(const int64_t transposes, view.Int(i == 0 ? "transA" : "transB", 0));
    if (transposes == 0) continue;
    HONE_ASSIGN_OR_RETURN(operands[i], MatrixTransposed(rewrite, operands[i]));
  }
  HONE_ASSIGN_OR_RETURN(const ValueId product, rewrite.Apply("MatMul", {operands[0], operands[1]}));
  if (alpha == 1) return std::vector{product};
  return Single(rewrite, "Mul", {product, rewrite.Scalar("alpha", product, alpha)});
}

Composed ComposeFusedGemm(Rewrite& rewrite) {
  const NodeView view = rewrite.view();
  HONE_ASSIGN_OR_RETURN(const std::string activation, view.String("activation", ""));
  PlainAttributes parameters;
  if (activation == "LeakyRelu" || activation == "HardSigmoid" || activation == "Elu") {
    for (const std::string name : {"alpha", "beta"}) {
      if (name == "beta" && activation != "HardSigmoid") continue;
      if (auto value = rewrite.Take("activation_" + name)) parameters.emplace(name, *value);
    }
  } else if (activation != "Relu" && activation != "Sigmoid" && activation != "Tanh" &&
             !activation.empty()) {
    return view.UnimplementedError(
        absl::StrCat("the activation '", activation, "' is not supported"));
  }
  HONE_ASSIGN_OR_RETURN(
      const ValueId product,
      rewrite.Apply("Gemm", {rewrite.input(0), rewrite.input(1), rewrite.input(2)},
                    Kept(rewrite, {"alpha", "beta", "transA", "transB"})));
  if (activation.empty()) return std::vector{product};
  return Single(rewrite, activation, {product}, std::move(parameters));
}

Composed ComposeSimplifiedLayerNormalization(Rewrite& rewrite) {
  if (rewrite.Wants(1)) {
    return rewrite.view().UnimplementedError("its second output is not supported");
  }
  HONE_ASSIGN_OR_RETURN(const ValueId result,
                        rewrite.Apply("RMSNormalization", {rewrite.input(0), rewrite.input(1)},
                                      Kept(rewrite, {"axis", "epsilon", "stash_type"})));
  return std::vector{result, kNoValue};
}

// The inputs are the tensor, what skips the layer, and the scale; then, unless `is_simplified`, a
// bias of the result; then a bias of the sum. Output 3 is the sum that is normalized.
Composed SkipNormalization(Rewrite& rewrite, bool is_simplified) {
  const ValueId bias = is_simplified ? kNoValue : rewrite.input(3);
  HONE_ASSIGN_OR_RETURN(const ValueId sum,
                        SumOfPresent(rewrite, rewrite.input(0),
                                     {rewrite.input(1), rewrite.input(is_simplified ? 3 : 4)}));
  const PlainAttributes epsilon = {{"epsilon", rewrite.Take("epsilon").value_or(1e-12)}};
  std::vector<ValueId> results(4, kNoValue);
  if (rewrite.Wants(3)) results[3] = sum;
  if (is_simplified) {
    if (rewrite.Wants(1) || rewrite.Wants(2)) {
      return rewrite.view().UnimplementedError("outputs 1 and 2 are not supported");
    }
    HONE_ASSIGN_OR_RETURN(results[0],
                          rewrite.Apply("RMSNormalization", {sum, rewrite.input(2)}, epsilon));
    return results;
  }
  HONE_ASSIGN_OR_RETURN(
      const std::vector<ValueId> normalized,
      rewrite.ApplyFor({rewrite.Wants(0), rewrite.Wants(1), rewrite.Wants(2)}, "LayerNormalization",
                       {sum, rewrite.input(2), bias}, epsilon));
  std::copy(normalized.begin(), normalized.end(), results.begin());
  return results;
}

Composed ComposeSkipLayerNormalization(Rewrite& rewrite) {
  return SkipNormalization(rewrite, /*is_simplified=*/false);
}
Composed ComposeSkipSimplifiedLayerNormalization(Rewrite& rewrite) {
  return SkipNormalization(rewrite, /*is_simplified=*/true);
}

// Positions of tokens [batch, sequence] from an input with all of them or with the first one.
absl::StatusOr<ValueId> AllPositions(Rewrite& rewrite, ValueId positions, int64_t batch,
                                     int64_t sequence) {
  const int64_t given = rewrite.TypeOf(positions).elements();
  if (given == batch * sequence) return rewrite.Reshape(positions, {batch, sequence});
  if (given != 1) {
    return rewrite.view().InvalidError(absl::StrCat("positions are ",
                                                    rewrite.TypeOf(positions).ToText(), " for ",
                                                    batch, " x ", sequence, " tokens"));
  }
  HONE_ASSIGN_OR_RETURN(const ValueId first, rewrite.Reshape(positions, {1, 1}));
  if (sequence > 0 && batch > kMaxPositions / sequence) {
    return rewrite.view().UnimplementedError(
        absl::StrCat(batch, " x ", sequence, " tokens are not supported; at most ", kMaxPositions));
  }
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < batch * sequence; ++i) offsets.push_back(i % sequence);
  HONE_ASSIGN_OR_RETURN(ValueId steps,
                        rewrite.Reshape(rewrite.Ints("steps", offsets), {batch, sequence}));
  if (rewrite.TypeOf(first).dtype != ir::DType::kI64) {
    return rewrite.view().UnimplementedError("positions must be i64");
  }
  return rewrite.Apply("Add", {first, steps});
}

// ONNX's operator has the positions last and needs the number of heads.
Composed ComposeRotaryEmbedding(Rewrite& rewrite) {
  const NodeView view = rewrite.view();
  HONE_ASSIGN_OR_RETURN(const double scale, view.Float("scale", 1));
  HONE_ASSIGN_OR_RETURN(const int64_t is_packed, view.Int("is_packed_batching", 0));
  if (scale != 1 || is_packed != 0) {
    return view.UnimplementedError("scale and is_packed_batching are not supported");
  }
  const std::vector<int64_t> shape = view.Shape(0);
  if ((shape.size() != 3 && shape.size() != 4) || view.Rank(2) != 2) {
    return view.InvalidError(
        absl::StrCat("cannot rotate ", view.Type(0).ToText(), " by ", view.Type(2).ToText()));
  }
  const bool is_joined = shape.size() == 3;
  HONE_ASSIGN_OR_RETURN(int64_t rotated_size, view.Int("rotary_embedding_dim", 0));
  HONE_ASSIGN_OR_RETURN(int64_t heads, view.Int("num_heads", 0));
  if (is_joined && heads == 0 && rotated_size == 0 && view.Shape(2)[1] > 0) {
    heads = shape[2] / (2 * view.Shape(2)[1]);
  }
  if (is_joined && (heads <= 0 || shape[2] % heads != 0)) {
    return view.InvalidError(absl::StrCat("num_heads is ", heads, " for ", view.Type(0).ToText()));
  }
  HONE_ASSIGN_OR_RETURN(const int64_t interleaved, view.Int("interleaved", 0));
  HONE_ASSIGN_OR_RETURN(const ValueId positions, AllPositions(rewrite, rewrite.input(1), shape[0],
                                                              is_joined ? shape[1] : shape[2]));
  ValueId x = rewrite.input(0);
  if (is_joined) {
    HONE_ASSIGN_OR_RETURN(x, SplitHeads(rewrite, x, heads));
  }
  HONE_ASSIGN_OR_RETURN(
      x, rewrite.Apply("RotaryEmbedding", {x, rewrite.input(2), rewrite.input(3), positions},
                       {{"interleaved", interleaved}, {"rotary_embedding_dim", rotated_size}}));
  if (!is_joined) return std::vector{x};
  HONE_ASSIGN_OR_RETURN(
      x, rewrite.Apply("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}));
  HONE_ASSIGN_OR_RETURN(x, rewrite.Reshape(x, shape));
  return std::vector{x};
}

}  // namespace

absl::Span<const Composition> FusedCompositions() {
  static constexpr Composition kCompositions[] = {
      {"Attention", ComposeAttention, "floats", nullptr, {3, 7}},
      {"SimplifiedLayerNormalization",
       ComposeSimplifiedLayerNormalization,
       "becomes RMSNormalization",
       nullptr,
       {2, 2}},
      {"com.microsoft.BiasGelu", ComposeBiasGelu, "", nullptr, {2, 2}},
      {"com.microsoft.FastGelu", ComposeFastGelu, "", nullptr, {1, 2}},
      {"com.microsoft.FusedGemm",
       ComposeFusedGemm,
       "Relu, Sigmoid, Tanh, LeakyRelu, Elu and HardSigmoid",
       nullptr,
       {2, 3}},
      {"com.microsoft.FusedMatMul",
       ComposeFusedMatMul,
       "without transBatchA and transBatchB",
       nullptr,
       {2, 2}},
      {"com.microsoft.Gelu", ComposeGelu, "", nullptr, {1, 1}},
      {"com.microsoft.GroupQueryAttention",
       ComposeGroupQueryAttention,
       "the length of the cache is that of past_key unless total_sequence_length is constant",
       nullptr,
       {1, 14}},
      {"com.microsoft.MatMulNBits",
       ComposeMatMulNBits,
       "constant weights of 4 or 8 bits, without g_idx",
       nullptr,
       {3, 6}},
      {"com.microsoft.MultiHeadAttention",
       ComposeMultiHeadAttention,
       "without packed inputs",
       nullptr,
       {1, 10}},
      {"com.microsoft.QuickGelu", ComposeQuickGelu, "", nullptr, {1, 1}},
      {"com.microsoft.RotaryEmbedding",
       ComposeRotaryEmbedding,
       "without packed batches",
       nullptr,
       {4, 4}},
      {"com.microsoft.SimplifiedLayerNormalization",
       ComposeSimplifiedLayerNormalization,
       "becomes RMSNormalization",
       nullptr,
       {2, 2}},
      {"com.microsoft.SkipLayerNormalization", ComposeSkipLayerNormalization, "", nullptr, {3, 5}},
      {"com.microsoft.SkipSimplifiedLayerNormalization",
       ComposeSkipSimplifiedLayerNormalization,
       "",
       nullptr,
       {3, 4}},
  };
  return kCompositions;
}

}  // namespace hone::onnx

// Attention of ONNX and two forms of it of ONNX Runtime.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/network/onnx/compose/attention.h"
#include "client/network/onnx/compose/composition.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::NodeView;
using graph::ValueId;
using Extents = std::vector<int64_t>;

constexpr int64_t kMostPositions = int64_t{1} << 31;  // a larger window has no limit

// The past keys or values, and the new ones after them.
absl::StatusOr<ValueId> Appended(Rewrite& rewrite, ValueId past, ValueId added) {
  if (past == kNoValue) return added;
  const Extents shape = rewrite.TypeOf(past).shape;
  if (shape.size() == 4 && shape[2] == 0) return added;
  return rewrite.Apply("Concat", {past, added}, {{"axis", int64_t{2}}});
}

absl::StatusOr<std::optional<double>> ScaleOf(const NodeView& node) {
  if (!node.HasAttribute("scale")) return std::nullopt;
  HONE_ASSIGN_OR_RETURN(const double scale, node.Float("scale", 1));
  return scale;
}

// Adds False or -inf to the last dimension of a mask until it has `keys` elements.
absl::StatusOr<ValueId> ExtendedMask(Rewrite& rewrite, ValueId mask, int64_t keys) {
  graph::TensorType type = rewrite.TypeOf(mask);
  if (type.shape.empty() || type.shape.back() >= keys) return mask;
  type.shape.back() = keys - type.shape.back();
  const ir::Scalar element = type.dtype == ir::DType::kBool
                                 ? ir::CastTo(type.dtype, 0)
                                 : ir::Scalar(-std::numeric_limits<double>::infinity());
  HONE_ASSIGN_OR_RETURN(const ValueId more, rewrite.Filled("masked_end", type, element));
  return rewrite.Apply("Concat", {mask, more}, {{"axis", int64_t{-1}}});
}

// One number for each batch, as i64[batch, 1, 1, 1].
absl::StatusOr<ValueId> PerBatch(Rewrite& rewrite, ValueId numbers, int64_t batch) {
  if (rewrite.TypeOf(numbers).elements() != batch) {
    return rewrite.view().InvalidError(
        absl::StrCat("lengths are ", rewrite.TypeOf(numbers).ToText(), " for a batch of ", batch));
  }
  if (rewrite.TypeOf(numbers).dtype != ir::DType::kI64) {
    HONE_ASSIGN_OR_RETURN(numbers, rewrite.Apply("Cast", {numbers}, {{"to", int64_t{7}}}));
  }
  return rewrite.Reshape(numbers, {batch, 1, 1, 1});
}

// An input [batch, sequence, heads * size] or [batch, heads, sequence, size] in the latter form.
absl::StatusOr<ValueId> HeadsOfInput(Rewrite& rewrite, int input, int64_t heads) {
  const NodeView view = rewrite.view();
  if (view.Rank(input) == 4) return rewrite.input(input);
  if (view.Rank(input) == 3 && heads > 0 && view.Shape(input)[2] % heads == 0) {
    return SplitHeads(rewrite, rewrite.input(input), heads);
  }
  return view.InvalidError(
      absl::StrCat("cannot divide ", view.Type(input).ToText(), " into ", heads, " heads"));
}

}  // namespace

Composed ComposeAttention(Rewrite& rewrite) {
  enum Input { kQ, kK, kV, kMask, kPastKey, kPastValue, kLengths };
  const NodeView view = rewrite.view();
  HONE_ASSIGN_OR_RETURN(const int64_t q_heads, view.Int("q_num_heads", 0));
  HONE_ASSIGN_OR_RETURN(const int64_t kv_heads, view.Int("kv_num_heads", 0));
  HONE_ASSIGN_OR_RETURN(const int64_t causal, view.Int("is_causal", 0));
  HONE_ASSIGN_OR_RETURN(const int64_t mode, view.Int("qk_matmul_output_mode", 0));
  HONE_ASSIGN_OR_RETURN(const int64_t precision, view.Int("softmax_precision", 0));
  Visible visible{.is_causal = causal != 0};
  HONE_ASSIGN_OR_RETURN(visible.left, view.Int("left_window_size", -1));
  HONE_ASSIGN_OR_RETURN(visible.right, view.Int("right_window_size", -1));
  Heads heads;
  HONE_ASSIGN_OR_RETURN(heads.scale, ScaleOf(view));
  HONE_ASSIGN_OR_RETURN(heads.softcap, view.Float("softcap", 0));
  if (mode < 0 || mode > 3) {
    return view.InvalidError(absl::StrCat("qk_matmul_output_mode is ", mode));
  }
  if (visible.left > kMostPositions) visible.left = -1;
  if (visible.right > kMostPositions) visible.right = -1;
  // Shorter floats than the scores would only lose digits: Hone's softmax computes in f32 or f64.
  if (precision != 0 && precision != 1 && precision != 10 && precision != 11 && precision != 16) {
    return view.InvalidError(absl::StrCat("softmax_precision is ", precision));
  }
  if (precision == 11 && view.Type(kQ).dtype != ir::DType::kF64) {
    return view.UnimplementedError("a softmax in f64 of shorter floats is not supported");
  }
  if (view.Has(kPastKey) != view.Has(kPastValue)) {
    return view.InvalidError("needs both past keys and past values, or none");
  }
  if (view.Has(kPastKey) && view.Has(kLengths)) {
    return view.InvalidError("cannot have both a past and nonpad_kv_seqlen");
  }
  const bool is_joined = view.Rank(kQ) == 3;
  HONE_ASSIGN_OR_RETURN(heads.q, HeadsOfInput(rewrite, kQ, q_heads));
  HONE_ASSIGN_OR_RETURN(heads.k, HeadsOfInput(rewrite, kK, kv_heads));
  HONE_ASSIGN_OR_RETURN(heads.v, HeadsOfInput(rewrite, kV, kv_heads));
  HONE_ASSIGN_OR_RETURN(heads.k, Appended(rewrite, rewrite.input(kPastKey), heads.k));
  HONE_ASSIGN_OR_RETURN(heads.v, Appended(rewrite, rewrite.input(kPastValue), heads.v));
  const Extents q = rewrite.TypeOf(heads.q).shape, k = rewrite.TypeOf(heads.k).shape;
  if (view.Has(kPastKey) && view.Rank(kPastKey) == 4) visible.offset = view.Shape(kPastKey)[2];
  if (view.Has(kLengths)) {
    HONE_ASSIGN_OR_RETURN(visible.lengths, PerBatch(rewrite, rewrite.input(kLengths), q[0]));
    HONE_ASSIGN_OR_RETURN(visible.offsets,
                          rewrite.Apply("Sub", {visible.lengths, rewrite.Whole("queries", q[2])}));
    heads.may_see_none = true;
  }
  HONE_ASSIGN_OR_RETURN(heads.allowed, MaskOf(rewrite, visible, q[2], k[2]));
  // A window may end before the first key or begin after the last one.
  heads.may_see_none |= visible.left >= 0;
  if (view.Has(kMask)) {
    HONE_ASSIGN_OR_RETURN(ValueId mask, ExtendedMask(rewrite, rewrite.input(kMask), k[2]));
    if (rewrite.TypeOf(mask).dtype != ir::DType::kBool) {
      heads.bias = mask;
      HONE_ASSIGN_OR_RETURN(mask,
                            rewrite.Apply("IsInf", {mask}, {{"detect_positive", int64_t{0}}}));
      HONE_ASSIGN_OR_RETURN(mask, rewrite.Apply("Not", {mask}));
    }
    HONE_ASSIGN_OR_RETURN(heads.allowed, BothTrue(rewrite, heads.allowed, mask));
    heads.may_see_none = true;
  }
  if (rewrite.Wants(3)) heads.scores = mode;
  HONE_ASSIGN_OR_RETURN(Attended attended, Attend(rewrite, heads));
  if (is_joined) {
    HONE_ASSIGN_OR_RETURN(attended.y, JoinHeads(rewrite, attended.y));
  }
  return std::vector{attended.y, heads.k, heads.v, attended.scores};
}

namespace {

// The input with a past cache of at least `length` positions.
absl::StatusOr<ValueId> CacheOfLength(Rewrite& rewrite, ValueId past, int64_t length) {
  graph::TensorType type = rewrite.TypeOf(past);
  if (type.shape[2] >= length) return past;
  type.shape[2] = length - type.shape[2];
  HONE_ASSIGN_OR_RETURN(const ValueId more,
                        rewrite.Filled("more", type, ir::CastTo(type.dtype, 0)));
  return rewrite.Apply("Concat", {past, more}, {{"axis", int64_t{2}}});
}

// What GroupQueryAttention reads and writes.
class GroupQuery {
 public:
  explicit GroupQuery(Rewrite& rewrite) : rewrite_(rewrite), view_(rewrite.view()) {}

  Composed Write() {
    HONE_RETURN_IF_ERROR(ReadAttributes());
    HONE_RETURN_IF_ERROR(ReadTokens());
    HONE_RETURN_IF_ERROR(ReadPast());
    if (rotates_) {
      HONE_ASSIGN_OR_RETURN(const ValueId positions, TokenPositions());
      HONE_ASSIGN_OR_RETURN(heads_.q, Rotated(heads_.q, positions));
      HONE_ASSIGN_OR_RETURN(heads_.k, Rotated(heads_.k, positions));
    }
    if (past_length_ > 0) {
      HONE_ASSIGN_OR_RETURN(heads_.k, Written(kPastKey, heads_.k));
      HONE_ASSIGN_OR_RETURN(heads_.v, Written(kPastValue, heads_.v));
    }
    Visible visible{.is_causal = true, .left = window_, .offsets = offsets_};
    HONE_ASSIGN_OR_RETURN(heads_.allowed,
                          MaskOf(rewrite_, visible, queries_, rewrite_.TypeOf(heads_.k).shape[2]));
    heads_.bias = rewrite_.input(kBias);
    HONE_ASSIGN_OR_RETURN(const Attended attended, Attend(rewrite_, heads_));
    HONE_ASSIGN_OR_RETURN(const ValueId y, JoinHeads(rewrite_, attended.y));
    return std::vector{y, heads_.k, heads_.v, kNoValue};
  }

 private:
  enum Input {
    kQuery,
    kKey,
    kValue,
    kPastKey,
    kPastValue,
    kSeqlens,
    kTotal,
    kCos,
    kSin,
    kPositions,
    kBias,
    kSink
  };

  absl::Status ReadAttributes() {
    HONE_ASSIGN_OR_RETURN(q_heads_, view_.Int("num_heads", 0));
    HONE_ASSIGN_OR_RETURN(kv_heads_, view_.Int("kv_num_heads", 0));
    HONE_ASSIGN_OR_RETURN(heads_.scale, ScaleOf(view_));
    if (heads_.scale == 0.0) heads_.scale.reset();  // means the default
    HONE_ASSIGN_OR_RETURN(heads_.softcap, view_.Float("softcap", 0));
    HONE_ASSIGN_OR_RETURN(const int64_t rotates, view_.Int("do_rotary", 0));
    rotates_ = rotates != 0;
    HONE_ASSIGN_OR_RETURN(interleaved_, view_.Int("rotary_interleaved", 0));
    HONE_ASSIGN_OR_RETURN(const int64_t window, view_.Int("local_window_size", -1));
    window_ = 0 < window && window < kMostPositions ? window - 1 : -1;  // a query counts itself
    HONE_ASSIGN_OR_RETURN(const int64_t smooth, view_.Int("smooth_softmax", 0));
    HONE_ASSIGN_OR_RETURN(const std::string k_quantized, view_.String("k_quant_type", "NONE"));
    HONE_ASSIGN_OR_RETURN(const std::string v_quantized, view_.String("v_quant_type", "NONE"));
    if (smooth > 0 || k_quantized != "NONE" || v_quantized != "NONE" || view_.inputs() > kSink ||
        rewrite_.Wants(3)) {
      return view_.UnimplementedError(
          "smooth_softmax, head_sink, quantized caches and output_qk are not supported");
    }
    if (q_heads_ > 0 && kv_heads_ > 0 && q_heads_ % kv_heads_ == 0) return absl::OkStatus();
    return view_.InvalidError(
        absl::StrCat("num_heads is ", q_heads_, " and kv_num_heads ", kv_heads_));
  }

  // Queries, keys and values may be joined in the first input.
  absl::Status ReadTokens() {
    if (view_.Rank(kQuery) != 3 || view_.Has(kKey) != view_.Has(kValue)) {
      return view_.InvalidError("needs a query of rank 3, and both keys and values or none");
    }
    batch_ = view_.Shape(kQuery)[0];
    queries_ = view_.Shape(kQuery)[1];
    if (view_.Has(kKey)) {
      HONE_ASSIGN_OR_RETURN(heads_.q, HeadsOfInput(rewrite_, kQuery, q_heads_));
      HONE_ASSIGN_OR_RETURN(heads_.k, HeadsOfInput(rewrite_, kKey, kv_heads_));
      HONE_ASSIGN_OR_RETURN(heads_.v, HeadsOfInput(rewrite_, kValue, kv_heads_));
      return absl::OkStatus();
    }
    const int64_t width = view_.Shape(kQuery)[2];
    const int64_t heads = q_heads_ > width ? 0 : q_heads_ + 2 * kv_heads_;
    if (heads == 0 || width % heads != 0) {
      return view_.InvalidError(absl::StrCat("cannot divide ", view_.Type(kQuery).ToText(),
                                             " into ", q_heads_, " and twice ", kv_heads_,
                                             " heads"));
    }
    const int64_t size = width / heads;
    HONE_ASSIGN_OR_RETURN(
        const std::vector<ValueId> parts,
        rewrite_.ApplyFor(
            {true, true, true}, "Split",
            {rewrite_.input(kQuery),
             rewrite_.Ints("parts", {q_heads_ * size, kv_heads_ * size, kv_heads_ * size})},
            {{"axis", int64_t{2}}}));
    HONE_ASSIGN_OR_RETURN(heads_.q, SplitHeads(rewrite_, parts[0], q_heads_));
    HONE_ASSIGN_OR_RETURN(heads_.k, SplitHeads(rewrite_, parts[1], kv_heads_));
    HONE_ASSIGN_OR_RETURN(heads_.v, SplitHeads(rewrite_, parts[2], kv_heads_));
    return absl::OkStatus();
  }

  // The cache has a fixed length, of which a part is in use: seqlens_k + 1 positions with the new
  // tokens. offsets_ is the number of positions before the new tokens.
  absl::Status ReadPast() {
    if (view_.Has(kPastKey) != view_.Has(kPastValue)) {
      return view_.InvalidError("needs both past keys and past values, or none");
    }
    if (!view_.Has(kPastKey)) return absl::OkStatus();
    const Extents shape = view_.Shape(kPastKey);
    if (shape.size() != 4) {
      return view_.InvalidError(absl::StrCat("past keys are ", view_.Type(kPastKey).ToText()));
    }
    past_length_ = shape[2];
    if (past_length_ == 0) return absl::OkStatus();
    if (!view_.Has(kSeqlens)) return view_.InvalidError("seqlens_k is missing");
    cache_length_ = past_length_;
    if (view_.Has(kTotal) && view_.IsConstant(kTotal)) {
      HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> total, view_.Ints(kTotal));
      if (total.size() == 1) cache_length_ = std::max(cache_length_, total[0]);
    }
    if (queries_ > cache_length_) {
      return view_.InvalidError(
          absl::StrCat(queries_, " tokens do not fit a cache of ", cache_length_, " positions"));
    }
    HONE_ASSIGN_OR_RETURN(const ValueId last, PerBatch(rewrite_, rewrite_.input(kSeqlens), batch_));
    HONE_ASSIGN_OR_RETURN(offsets_,
                          rewrite_.Apply("Sub", {last, rewrite_.Whole("before", queries_ - 1)}));
    if (queries_ > 1) {  // a prompt may be padded on the right
      HONE_ASSIGN_OR_RETURN(offsets_, rewrite_.Apply("Max", {offsets_, rewrite_.Whole("zero", 0)}));
    }
    return absl::OkStatus();
  }

  // i64[batch, queries].
  absl::StatusOr<ValueId> TokenPositions() {
    if (view_.Has(kPositions)) {
      if (view_.Type(kPositions).elements() != batch_ * queries_) {
        return view_.InvalidError(
            absl::StrCat("position_ids are ", view_.Type(kPositions).ToText()));
      }
      return rewrite_.Reshape(rewrite_.input(kPositions), {batch_, queries_});
    }
    if (queries_ > kMaxPositions) {
      return view_.UnimplementedError(
          absl::StrCat(queries_, " tokens are not supported; at most ", kMaxPositions));
    }
    std::vector<int64_t> steps;
    for (int64_t i = 0; i < queries_; ++i) steps.push_back(i);
    HONE_ASSIGN_OR_RETURN(const ValueId row,
                          rewrite_.Reshape(rewrite_.Ints("steps", steps), {1, queries_}));
    if (offsets_ == kNoValue) return row;
    HONE_ASSIGN_OR_RETURN(const ValueId first, rewrite_.Reshape(offsets_, {batch_, 1}));
    if (queries_ == 1) return first;
    return rewrite_.Apply("Add", {first, row});
  }

  absl::StatusOr<ValueId> Rotated(ValueId value, ValueId positions) {
    if (!view_.Has(kCos) || !view_.Has(kSin)) {
      return view_.InvalidError("do_rotary needs cos_cache and sin_cache");
    }
    if (view_.Rank(kCos) != 2) {
      return view_.InvalidError(absl::StrCat("cos_cache is ", view_.Type(kCos).ToText()));
    }
    const int64_t size = 2 * view_.Shape(kCos)[1];
    return rewrite_.Apply("RotaryEmbedding",
                          {value, rewrite_.input(kCos), rewrite_.input(kSin), positions},
                          {{"interleaved", interleaved_}, {"rotary_embedding_dim", size}});
  }

  // The cache with the new keys or values.
  absl::StatusOr<ValueId> Written(int past, ValueId added) {
    if (view_.Rank(past) != 4) {
      return view_.InvalidError(absl::StrCat("a cache is ", view_.Type(past).ToText()));
    }
    HONE_ASSIGN_OR_RETURN(const ValueId cache,
                          CacheOfLength(rewrite_, rewrite_.input(past), cache_length_));
    HONE_ASSIGN_OR_RETURN(const ValueId places, rewrite_.Reshape(offsets_, {batch_}));
    return rewrite_.Apply("TensorScatter", {cache, added, places}, {{"axis", int64_t{2}}});
  }

  Rewrite& rewrite_;
  const NodeView view_;
  Heads heads_;
  int64_t q_heads_ = 0, kv_heads_ = 0, interleaved_ = 0, window_ = -1;
  bool rotates_ = false;
  int64_t batch_ = 0, queries_ = 0, past_length_ = 0, cache_length_ = 0;
  ValueId offsets_ = kNoValue;  // i64[batch, 1, 1, 1]; kNoValue: there is no past
};

}  // namespace

Composed ComposeGroupQueryAttention(Rewrite& rewrite) { return GroupQuery(rewrite).Write(); }

Composed ComposeMultiHeadAttention(Rewrite& rewrite) {
  enum Input { kQ, kK, kV, kInputBias, kPadding, kBias, kPastKey, kPastValue, kPastLength };
  const NodeView view = rewrite.view();
  HONE_ASSIGN_OR_RETURN(const int64_t count, view.Int("num_heads", 0));
  HONE_ASSIGN_OR_RETURN(const int64_t causal, view.Int("unidirectional", 0));
  HONE_ASSIGN_OR_RETURN(const double masked, view.Float("mask_filter_value", -10000));
  Heads heads;
  HONE_ASSIGN_OR_RETURN(heads.scale, ScaleOf(view));
  if (heads.scale == 0.0) heads.scale.reset();
  if (view.Rank(kQ) != 3 || !view.Has(kK) || !view.Has(kV) || view.inputs() > kPastLength ||
      rewrite.Wants(3)) {
    return view.UnimplementedError(
        "packed inputs, past_sequence_length, cache_indirection and the output qk are not "
        "supported");
  }
  if (count <= 0 || view.Shape(kQ)[2] % count != 0) {
    return view.InvalidError(absl::StrCat("num_heads is ", count, " for ", view.Type(kQ).ToText()));
  }
  // The bias of queries, keys and values is one tensor.
  ValueId parts[3] = {rewrite.input(kQ), rewrite.input(kK), rewrite.input(kV)};
  int64_t begin = 0;
  for (const int i : {kQ, kK, kV}) {
    const Extents shape = view.Shape(i);
    if (shape.size() == 3 && view.Has(kInputBias)) {
      HONE_ASSIGN_OR_RETURN(
          const ValueId part,
          rewrite.Apply("Slice", {rewrite.input(kInputBias), rewrite.Ints("begin", {begin}),
                                  rewrite.Ints("end", {begin + shape[2]})}));
      HONE_ASSIGN_OR_RETURN(parts[i], rewrite.Apply("Add", {parts[i], part}));
      begin += shape[2];
    }
    if (shape.size() == 4) continue;
    if (shape.size() != 3 || shape[2] % count != 0) {
      return view.InvalidError(
          absl::StrCat("cannot divide ", view.Type(i).ToText(), " into ", count, " heads"));
    }
    HONE_ASSIGN_OR_RETURN(parts[i], SplitHeads(rewrite, parts[i], count));
  }
  heads.q = parts[kQ];
  HONE_ASSIGN_OR_RETURN(heads.k, Appended(rewrite, rewrite.input(kPastKey), parts[kK]));
  HONE_ASSIGN_OR_RETURN(heads.v, Appended(rewrite, rewrite.input(kPastValue), parts[kV]));
  const Extents q = rewrite.TypeOf(heads.q).shape, k = rewrite.TypeOf(heads.k).shape;
  Visible visible{.is_causal = causal != 0, .offset = k[2] - q[2]};
  HONE_ASSIGN_OR_RETURN(heads.allowed, MaskOf(rewrite, visible, q[2], k[2]));
  heads.bias = rewrite.input(kBias);
  if (view.Has(kPadding)) {
    const Extents shape = view.Shape(kPadding);
    const bool is_per_query = shape.size() == 3;
    if ((shape.size() != 2 && !is_per_query) || shape.back() != k[2]) {
      return view.UnimplementedError(absl::StrCat("a key_padding_mask ",
                                                  view.Type(kPadding).ToText(), " for ", k[2],
                                                  " keys is not supported"));
    }
    HONE_ASSIGN_OR_RETURN(const ValueId kept,
                          rewrite.Apply("Cast", {rewrite.input(kPadding)}, {{"to", int64_t{9}}}));
    HONE_ASSIGN_OR_RETURN(const ValueId mask,
                          rewrite.Reshape(kept, {shape[0], 1, is_per_query ? shape[1] : 1, k[2]}));
    HONE_ASSIGN_OR_RETURN(const ValueId padding,
                          rewrite.Apply("Where", {mask, rewrite.Scalar("kept", heads.q, 0),
                                                  rewrite.Scalar("padding", heads.q, masked)}));
    if (heads.bias == kNoValue) {
      heads.bias = padding;
    } else {
      HONE_ASSIGN_OR_RETURN(heads.bias, rewrite.Apply("Add", {heads.bias, padding}));
    }
  }
  HONE_ASSIGN_OR_RETURN(const Attended attended, Attend(rewrite, heads));
  HONE_ASSIGN_OR_RETURN(const ValueId y, JoinHeads(rewrite, attended.y));
  return std::vector{y, heads.k, heads.v, kNoValue};
}

}  // namespace hone::onnx

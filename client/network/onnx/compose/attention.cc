#include "client/network/onnx/compose/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::NodeView;
using graph::ValueId;
using Extents = std::vector<int64_t>;

// The lowest finite number of a type of floats. Masked scores have it instead of -inf, whose
// difference to a maximum of -inf would be NaN.
double LowestFinite(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF16:
      return -65504;
    case ir::DType::kF64:
      return std::numeric_limits<double>::lowest();
    case ir::DType::kBF16:
      return -3.3895313892515355e38;
    default:
      return std::numeric_limits<float>::lowest();
  }
}

absl::StatusOr<ValueId> Permuted(Rewrite& rewrite, ValueId value, const Extents& permutation) {
  return rewrite.Apply("Transpose", {value}, {{"perm", permutation}});
}

// The positions of keys relative to those of queries, if the first key and the first query have the
// same one: i64[queries, keys]. Computed when they are first read.
graph::ConstantData Positions(int64_t queries, int64_t keys) {
  const Digest recipe = DigestBuilder().Add("positions").Add(queries).Add(keys).Finish();
  return graph::ConstantData::Computed(recipe, queries * keys * 8, [=] {
    std::string bytes(queries * keys * 8, '\0');
    for (int64_t at = 0; at < queries * keys; ++at) {
      const int64_t place = at % keys - at / keys;
      std::memcpy(bytes.data() + at * 8, &place, 8);
    }
    return bytes;
  });
}

// Whether the pairs are visible, for an offset that is known.
absl::StatusOr<ValueId> KnownMask(Rewrite& rewrite, const Visible& visible, int64_t queries,
                                  int64_t keys) {
  const int64_t first = visible.left < 0 ? -queries - keys : visible.offset - visible.left;
  const std::optional<int64_t> last = visible.Last();
  const int64_t end = last ? visible.offset + *last : queries + keys;
  if (first <= 1 - queries && end >= keys - 1) return kNoValue;  // all are visible
  const Digest recipe =
      DigestBuilder().Add("visible").Add(queries).Add(keys).Add(first).Add(end).Finish();
  graph::ConstantData data = graph::ConstantData::Computed(recipe, queries * keys, [=] {
    std::string bytes;
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t j = 0; j < keys; ++j) bytes += first <= j - i && j - i <= end ? '\1' : '\0';
    }
    return bytes;
  });
  return rewrite.Constant("visible", {ir::DType::kBool, {1, 1, queries, keys}}, std::move(data));
}

}  // namespace

absl::StatusOr<ValueId> BothTrue(Rewrite& rewrite, ValueId a, ValueId b) {
  if (a == kNoValue) return b;
  if (b == kNoValue) return a;
  return rewrite.Apply("And", {a, b});
}

absl::StatusOr<ValueId> MaskOf(Rewrite& rewrite, const Visible& visible, int64_t queries,
                               int64_t keys) {
  constexpr int64_t kMostPairs = int64_t{1} << 26;
  if (queries > kMostPairs / std::max<int64_t>(1, keys)) {
    return rewrite.view().UnimplementedError(
        absl::StrCat("a mask of ", queries, " x ", keys, " is not supported"));
  }
  ValueId mask = kNoValue;
  const std::optional<int64_t> last = visible.Last();
  if (visible.offsets == kNoValue) {
    HONE_ASSIGN_OR_RETURN(mask, KnownMask(rewrite, visible, queries, keys));
  } else if (last || visible.left >= 0) {
    const ValueId places = rewrite.Constant("places", {ir::DType::kI64, {1, 1, queries, keys}},
                                            Positions(queries, keys));
    if (last) {
      ValueId end = visible.offsets;
      if (*last > 0) {
        HONE_ASSIGN_OR_RETURN(end, rewrite.Apply("Add", {end, rewrite.Whole("right", *last)}));
      }
      HONE_ASSIGN_OR_RETURN(mask, rewrite.Apply("LessOrEqual", {places, end}));
    }
    if (visible.left >= 0) {
      HONE_ASSIGN_OR_RETURN(
          const ValueId begin,
          rewrite.Apply("Sub", {visible.offsets, rewrite.Whole("left", visible.left)}));
      HONE_ASSIGN_OR_RETURN(const ValueId after, rewrite.Apply("LessOrEqual", {begin, places}));
      HONE_ASSIGN_OR_RETURN(mask, BothTrue(rewrite, mask, after));
    }
  }
  if (visible.lengths == kNoValue) return mask;
  const ValueId places =
      rewrite.Constant("places", {ir::DType::kI64, {1, 1, 1, keys}}, Positions(1, keys));
  HONE_ASSIGN_OR_RETURN(const ValueId exists, rewrite.Apply("Less", {places, visible.lengths}));
  return BothTrue(rewrite, mask, exists);
}

absl::StatusOr<ValueId> SplitHeads(Rewrite& rewrite, ValueId joined, int64_t heads) {
  const Extents shape = rewrite.TypeOf(joined).shape;
  HONE_ASSIGN_OR_RETURN(const ValueId split,
                        rewrite.Reshape(joined, {shape[0], shape[1], heads, shape[2] / heads}));
  return Permuted(rewrite, split, {0, 2, 1, 3});
}

absl::StatusOr<ValueId> JoinHeads(Rewrite& rewrite, ValueId split) {
  const Extents shape = rewrite.TypeOf(split).shape;
  HONE_ASSIGN_OR_RETURN(const ValueId transposed, Permuted(rewrite, split, {0, 2, 1, 3}));
  return rewrite.Reshape(transposed, {shape[0], shape[2], shape[1] * shape[3]});
}

namespace {

class AttentionWriter {
 public:
  AttentionWriter(Rewrite& rewrite, const Heads& heads)
      : rewrite_(rewrite),
        heads_(heads),
        q_(rewrite.TypeOf(heads.q).shape),
        k_(rewrite.TypeOf(heads.k).shape),
        v_(rewrite.TypeOf(heads.v).shape) {}

  absl::StatusOr<Attended> Write() {
    HONE_RETURN_IF_ERROR(Check());
    const ir::DType dtype = rewrite_.TypeOf(heads_.q).dtype;
    const double scale =
        heads_.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, q_[3]))));
    ValueId q = heads_.q;
    if (scale != 1) {
      HONE_ASSIGN_OR_RETURN(q, rewrite_.Apply("Mul", {q, rewrite_.Scalar("scale", q, scale)}));
    }
    HONE_ASSIGN_OR_RETURN(q, Grouped(q, q_));
    HONE_ASSIGN_OR_RETURN(const ValueId keys, Ungrouped(heads_.k, k_));
    Extents permutation;
    for (size_t d = 0; d < rewrite_.TypeOf(keys).shape.size(); ++d) {
      permutation.push_back(static_cast<int64_t>(d));
    }
    std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
    HONE_ASSIGN_OR_RETURN(const ValueId k, Permuted(rewrite_, keys, permutation));
    HONE_ASSIGN_OR_RETURN(ValueId scores, rewrite_.Apply("MatMul", {q, k}));
    ValueId wanted = scores;
    if (heads_.softcap != 0) {
      const ValueId cap = rewrite_.Scalar("softcap", scores, heads_.softcap);
      HONE_ASSIGN_OR_RETURN(scores, rewrite_.Apply("Div", {scores, cap}));
      HONE_ASSIGN_OR_RETURN(scores, rewrite_.Apply("Tanh", {scores}));
      HONE_ASSIGN_OR_RETURN(scores, rewrite_.Apply("Mul", {scores, cap}));
    }
    if (heads_.scores == 1) wanted = scores;
    HONE_ASSIGN_OR_RETURN(const ValueId bias, GroupedMask(heads_.bias));
    HONE_ASSIGN_OR_RETURN(const ValueId allowed, GroupedMask(heads_.allowed));
    if (bias != kNoValue) {
      HONE_ASSIGN_OR_RETURN(scores, rewrite_.Apply("Add", {scores, bias}));
    }
    if (allowed != kNoValue) {
      const double masked =
          heads_.scores == 2 ? -std::numeric_limits<double>::infinity() : LowestFinite(dtype);
      HONE_ASSIGN_OR_RETURN(
          scores,
          rewrite_.Apply("Where", {allowed, scores, rewrite_.Scalar("masked", scores, masked)}));
    }
    if (heads_.scores == 2) wanted = scores;
    HONE_ASSIGN_OR_RETURN(ValueId shares,
                          rewrite_.Apply("Softmax", {scores}, {{"axis", int64_t{-1}}}));
    if (heads_.may_see_none && allowed != kNoValue) {
      HONE_ASSIGN_OR_RETURN(
          shares, rewrite_.Apply("Where", {allowed, shares, rewrite_.Scalar("none", shares, 0)}));
    }
    if (heads_.scores == 3) wanted = shares;
    HONE_ASSIGN_OR_RETURN(const ValueId v, Ungrouped(heads_.v, v_));
    HONE_ASSIGN_OR_RETURN(const ValueId y, rewrite_.Apply("MatMul", {shares, v}));
    Attended attended;
    HONE_ASSIGN_OR_RETURN(attended.y, rewrite_.Reshape(y, {q_[0], q_[1], q_[2], v_[3]}));
    if (heads_.scores >= 0) {
      HONE_ASSIGN_OR_RETURN(attended.scores,
                            rewrite_.Reshape(wanted, {q_[0], q_[1], q_[2], k_[2]}));
    }
    return attended;
  }

 private:
  absl::Status Check() const {
    const auto text = [&](ValueId id) { return rewrite_.TypeOf(id).ToText(); };
    const bool fits = q_.size() == 4 && k_.size() == 4 && v_.size() == 4 && q_[0] == k_[0] &&
                      q_[0] == v_[0] && q_[3] == k_[3] && k_[1] == v_[1] && k_[2] == v_[2] &&
                      k_[1] > 0 && q_[1] % k_[1] == 0;
    const ir::DType dtype = rewrite_.TypeOf(heads_.q).dtype;
    const bool same = dtype == rewrite_.TypeOf(heads_.k).dtype &&
                      dtype == rewrite_.TypeOf(heads_.v).dtype && ir::IsFloat(dtype);
    if (fits && same) return absl::OkStatus();
    return rewrite_.view().InvalidError(absl::StrCat("queries ", text(heads_.q), ", keys ",
                                                     text(heads_.k), " and values ", text(heads_.v),
                                                     " do not fit, or are no floats of one type"));
  }

  // How many heads of queries share a head of keys.
  int64_t group() const { return q_[1] / k_[1]; }
  // With one query, the heads of a group are the rows of a product. Otherwise they are a dimension
  // in which the keys are broadcast.
  bool heads_are_rows() const { return q_[2] == 1; }

  absl::StatusOr<ValueId> Grouped(ValueId value, const Extents& shape) {
    if (group() == 1) return value;
    Extents grouped = {shape[0], k_[1], group(), shape[3]};
    if (!heads_are_rows()) grouped.insert(grouped.begin() + 3, shape[2]);
    return rewrite_.Reshape(value, grouped);
  }
  absl::StatusOr<ValueId> Ungrouped(ValueId value, const Extents& shape) {
    if (group() == 1 || heads_are_rows()) return value;
    return rewrite_.Reshape(value, {shape[0], shape[1], 1, shape[2], shape[3]});
  }
  // Converts what is broadcast to the scores.
  absl::StatusOr<ValueId> GroupedMask(ValueId mask) {
    if (mask == kNoValue) return kNoValue;
    Extents shape = rewrite_.TypeOf(mask).shape;
    shape.insert(shape.begin(), 4 - std::min<size_t>(4, shape.size()), 1);
    const int64_t expected[] = {q_[0], q_[1], q_[2], k_[2]};
    for (size_t d = 0; d < 4; ++d) {
      if (shape.size() == 4 && (shape[d] == 1 || shape[d] == expected[d])) continue;
      return rewrite_.view().InvalidError(
          absl::StrCat("a mask or bias ", rewrite_.TypeOf(mask).ToText(), " does not fit ", q_[0],
                       " x ", q_[1], " x ", q_[2], " x ", k_[2], " scores"));
    }
    if (group() > 1) {
      const bool is_shared = shape[1] == 1;
      if (heads_are_rows()) {
        shape = {shape[0], is_shared ? 1 : k_[1], is_shared ? 1 : group(), shape[3]};
      } else {
        shape = {shape[0], is_shared ? 1 : k_[1], is_shared ? 1 : group(), shape[2], shape[3]};
      }
    }
    return rewrite_.Reshape(mask, shape);
  }

  Rewrite& rewrite_;
  const Heads heads_;
  const Extents q_, k_, v_;
};

}  // namespace

absl::StatusOr<Attended> Attend(Rewrite& rewrite, const Heads& heads) {
  return AttentionWriter(rewrite, heads).Write();
}

}  // namespace hone::onnx

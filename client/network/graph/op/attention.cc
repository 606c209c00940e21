// Operators around the attention of language models.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "client/network/graph/op/gather_scatter.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

using ir::DType;
using Shape = std::vector<int64_t>;

absl::Status NeedPlaces(const NodeView& node, int input) {
  const DType dtype = node.Type(input).dtype;
  if (dtype == DType::kI32 || dtype == DType::kI64) return absl::OkStatus();
  return node.InvalidError(absl::StrCat("input ", input, " must have type i32 or i64, but is ",
                                        node.Type(input).ToText()));
}

// Rotates pairs of the elements of each head by an angle that depends on the position of the token.
struct Rotation {
  enum Input { kX, kCos, kSin, kPositions };

  int64_t rotated = 0;  // the first elements of a head
  bool interleaved = false;

  // REQUIRES: the input has rank 4.
  static absl::StatusOr<Rotation> Of(const NodeView& node) {
    Rotation rotation;
    HONE_ASSIGN_OR_RETURN(rotation.rotated, node.Int("rotary_embedding_dim", 0));
    HONE_ASSIGN_OR_RETURN(const int64_t interleaved, node.Int("interleaved", 0));
    const int64_t size = node.Shape(kX)[3];
    if (rotation.rotated == 0) rotation.rotated = size;
    rotation.interleaved = interleaved != 0;
    if (0 < rotation.rotated && rotation.rotated <= size && rotation.rotated % 2 == 0) {
      return rotation;
    }
    return node.InvalidError(
        absl::StrCat("cannot rotate ", rotation.rotated, " of ", size, " elements"));
  }
};

absl::StatusOr<Types> InferRotaryEmbedding(const NodeView& node) {
  if (node.Rank(Rotation::kX) != 4) {
    return node.InvalidError(absl::StrCat("needs a tensor [batch, heads, sequence, size], not ",
                                          node.Type(Rotation::kX).ToText()));
  }
  HONE_ASSIGN_OR_RETURN(const Rotation rotation, Rotation::Of(node));
  HONE_RETURN_IF_ERROR(NeedFloat(node, Rotation::kX));
  HONE_RETURN_IF_ERROR(NeedOneType(node, Rotation::kX, Rotation::kSin));
  const Shape &x = node.Shape(Rotation::kX), &cos = node.Shape(Rotation::kCos);
  const bool has_positions = node.Has(Rotation::kPositions);
  bool fits = cos == node.Shape(Rotation::kSin) && !cos.empty() &&
              cos.back() == rotation.rotated / 2 && cos.size() == (has_positions ? 2 : 3);
  if (fits && !has_positions) fits = (cos[0] == x[0] || cos[0] == 1) && cos[1] == x[2];
  if (!fits) {
    return node.InvalidError(absl::StrCat(
        "a cosine ", node.Type(Rotation::kCos).ToText(), " and a sine ",
        node.Type(Rotation::kSin).ToText(), " do not fit ", node.Type(Rotation::kX).ToText(),
        has_positions ? " with positions" : " without positions"));
  }
  if (has_positions) {
    HONE_RETURN_IF_ERROR(NeedPlaces(node, Rotation::kPositions));
    const Shape& positions = node.Shape(Rotation::kPositions);
    if (positions.size() != 2 || (positions[0] != x[0] && positions[0] != 1) ||
        positions[1] != x[2]) {
      return node.InvalidError(absl::StrCat("positions are ",
                                            node.Type(Rotation::kPositions).ToText(), " for ",
                                            node.Type(Rotation::kX).ToText()));
    }
    HONE_RETURN_IF_ERROR(CheckConstantIndices(node, Rotation::kPositions, /*least=*/0, cos[0]));
  }
  return SameType(node);
}

absl::Status DefineRotaryEmbedding(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Rotation rotation, Rotation::Of(node));
  const int64_t half = rotation.rotated / 2, size = node.Shape(Rotation::kX)[3];
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(Rotation::kX));
  const std::string& i = axes[3];
  const auto x = [&](const std::string& at) {
    return writer.In(Rotation::kX, {axes[0], axes[1], axes[2], at});
  };
  const auto of_token = [&](int input) {
    return std::vector<std::string>{node.Shape(input)[0] == 1 ? "0" : axes[0], axes[2]};
  };
  const auto angle = [&](int input, const std::string& pair) {
    if (!node.Has(Rotation::kPositions)) {
      std::vector<std::string> indices = of_token(input);
      indices.push_back(pair);
      return writer.In(input, indices);
    }
    const std::string position = writer.In(Rotation::kPositions, of_token(Rotation::kPositions));
    return writer.In(input, {absl::StrCat("at(", position, ")"), pair});
  };
  // The element of a pair, its partner, and the sign of the partner's sine.
  const auto turned = [&](const std::string& pair, const std::string& partner,
                          absl::string_view sign) {
    return absl::Substitute("$0 * $1 $2 $3 * $4", x(i), angle(Rotation::kCos, pair), sign,
                            x(partner), angle(Rotation::kSin, pair));
  };
  std::string value;
  if (rotation.interleaved) {
    const std::string pair = absl::StrCat(i, " / 2");
    const std::string partner = absl::Substitute("2 * ($0 / 2) + 1 - $0 % 2", i);
    value = Guarded(turned(pair, partner, "-"), {absl::StrCat(i, " % 2 == 0")},
                    turned(pair, partner, "+"));
    if (rotation.rotated < size) {
      value = Guarded(value, {absl::StrCat(i, " < ", rotation.rotated)}, x(i));
    }
  } else {
    std::string second = turned(Offset(i, -half), Offset(i, -half), "+");
    if (rotation.rotated < size) {
      second = Guarded(second, {absl::StrCat(i, " < ", rotation.rotated)}, x(i));
    }
    value = Guarded(turned(i, Offset(i, half), "-"), {absl::StrCat(i, " < ", half)}, second);
  }
  if (node.Has(Rotation::kPositions)) {
    writer.SetBound(Rotation::kPositions, node.Shape(Rotation::kCos)[0]);
  }
  writer.Output(0, axes, value);
  return absl::OkStatus();
}

// Writes an update into a cache along an axis, for each batch at its own place.
struct CacheUpdate {
  enum Input { kCache, kUpdate, kPlaces };

  int64_t axis = 0, length = 0, updated = 0;
  bool is_circular = false;

  static absl::StatusOr<CacheUpdate> Of(const NodeView& node) {
    CacheUpdate update;
    HONE_ASSIGN_OR_RETURN(update.axis, node.AxisAttribute("axis", -2, node.Rank(kCache)));
    HONE_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "linear"));
    if (mode != "linear" && mode != "circular") {
      return node.InvalidError(absl::StrCat("mode is '", mode, "'"));
    }
    update.is_circular = mode == "circular";
    if (update.axis == 0) return node.InvalidError("axis 0 is that of the batch");
    Shape expected = node.Shape(kCache);
    if (node.Rank(kUpdate) == node.Rank(kCache)) {
      update.length = expected[update.axis];
      update.updated = expected[update.axis] = node.Shape(kUpdate)[update.axis];
    }
    if (expected == node.Shape(kUpdate) && update.updated <= update.length) return update;
    return node.InvalidError(absl::StrCat("an update ", node.Type(kUpdate).ToText(),
                                          " does not fit a cache ", node.Type(kCache).ToText(),
                                          " along dimension ", update.axis));
  }
};

absl::StatusOr<Types> InferTensorScatter(const NodeView& node) {
  HONE_RETURN_IF_ERROR(CacheUpdate::Of(node).status());
  HONE_RETURN_IF_ERROR(NeedOneType(node, CacheUpdate::kCache, CacheUpdate::kUpdate));
  if (node.Has(CacheUpdate::kPlaces)) {
    HONE_RETURN_IF_ERROR(NeedPlaces(node, CacheUpdate::kPlaces));
    if (node.Shape(CacheUpdate::kPlaces) != Shape{node.Shape(CacheUpdate::kCache)[0]}) {
      return node.InvalidError(absl::StrCat("write indices are ",
                                            node.Type(CacheUpdate::kPlaces).ToText(), " for ",
                                            node.Type(CacheUpdate::kCache).ToText()));
    }
    HONE_ASSIGN_OR_RETURN(const CacheUpdate update, CacheUpdate::Of(node));
    HONE_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "linear"));
    if (mode == "linear") {
      HONE_RETURN_IF_ERROR(CheckConstantIndices(node, CacheUpdate::kPlaces, /*least=*/0,
                                                update.length - update.updated + 1));
    }
  }
  return SameType(node);
}

absl::Status DefineTensorScatter(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const CacheUpdate update, CacheUpdate::Of(node));
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(CacheUpdate::kCache));
  const std::string& i = axes[update.axis];
  const std::string cache = writer.In(CacheUpdate::kCache, axes);
  const auto updated = [&](const std::string& at) {
    std::vector<std::string> indices = axes;
    indices[update.axis] = at;
    return writer.In(CacheUpdate::kUpdate, indices);
  };
  if (!node.Has(CacheUpdate::kPlaces)) {
    const bool is_all = update.updated == update.length;
    writer.Output(
        0, axes,
        is_all ? updated(i) : Guarded(updated(i), {absl::StrCat(i, " < ", update.updated)}, cache));
    return absl::OkStatus();
  }
  const bool is_single = node.Shape(CacheUpdate::kPlaces)[0] == 1;
  std::string begin = Convert(node.Type(CacheUpdate::kPlaces).dtype, DType::kI64,
                              writer.In(CacheUpdate::kPlaces, {is_single ? "0" : axes[0]}));
  const std::string length = absl::StrCat("i64(", update.length, ")");
  if (update.is_circular) begin = absl::Substitute("($0 - $0 / $1 * $1)", begin, length);
  if (update.updated == 1) {
    writer.Output(
        0, axes,
        absl::Substitute("select(index($0) == $1, $2, $3)", i, begin, updated("0"), cache));
    return absl::OkStatus();
  }
  std::string place = absl::StrCat("index(", i, ") - ", begin);
  if (update.is_circular) {
    place = absl::Substitute("select($0 < i64(0), $0 + $1, $0)", place, length);
  }
  writer.Output(0, axes,
                absl::Substitute("select(i64(0) <= $0 and $0 < i64($1), $2, $3)", place,
                                 update.updated, updated(absl::StrCat("at(", place, ")")), cache));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> AttentionOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"RotaryEmbedding", 3, 4, InferRotaryEmbedding, DefineRotaryEmbedding},
      {"TensorScatter", 2, 3, InferTensorScatter, DefineTensorScatter},
  };
  return kOperators;
}

}  // namespace hone::graph

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

// Operators whose results are known when a network is imported.
namespace hone::graph {
namespace {

using ir::DType;
using ir::Scalars;

constexpr int64_t kMaxRange = int64_t{1} << 26;  // elements of a Range, which is computed at import

// Returns the dimensions selected by Shape's attributes start and end.
absl::StatusOr<Scalars> ShapeOf(const NodeView& node) {
  const int64_t rank = node.Rank(0);
  const auto clamp = [&](int64_t at) {
    return std::min(std::max<int64_t>(at < 0 ? at + rank : at, 0), rank);
  };
  HONE_ASSIGN_OR_RETURN(const int64_t start, node.Int("start", 0));
  HONE_ASSIGN_OR_RETURN(const int64_t end, node.Int("end", rank));
  Scalars extents;
  for (int64_t d = clamp(start); d < clamp(end); ++d) extents.push_back(node.Shape(0)[d]);
  return extents;
}

absl::StatusOr<Types> InferShape(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const Scalars extents, ShapeOf(node));
  return Types{{DType::kI64, {static_cast<int64_t>(extents.size())}}};
}

absl::StatusOr<std::vector<Scalars>> FoldShape(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(Scalars extents, ShapeOf(node));
  return std::vector<Scalars>{std::move(extents)};
}

absl::StatusOr<Types> InferSize(const NodeView&) { return Types{{DType::kI64, {}}}; }

absl::StatusOr<std::vector<Scalars>> FoldSize(const NodeView& node) {
  return std::vector<Scalars>{{node.Type(0).elements()}};
}

// The value of a Constant, which is an attribute. An importer handles attributes that are tensors.
struct Attributes {
  TensorType type;
  Scalars elements;

  static absl::StatusOr<Attributes> Of(const NodeView& node) {
    Attributes value;
    if (node.HasAttribute("value_int")) {
      HONE_ASSIGN_OR_RETURN(const int64_t whole, node.Int("value_int", 0));
      value = {{DType::kI64, {}}, {whole}};
    } else if (node.HasAttribute("value_float")) {
      HONE_ASSIGN_OR_RETURN(const double real, node.Float("value_float", 0));
      value = {{DType::kF32, {}}, {real}};
    } else if (node.HasAttribute("value_ints")) {
      HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> wholes, node.IntList("value_ints", {}));
      value.elements.assign(wholes.begin(), wholes.end());
      value.type = {DType::kI64, {static_cast<int64_t>(wholes.size())}};
    } else if (node.HasAttribute("value_floats")) {
      HONE_ASSIGN_OR_RETURN(const std::vector<double> reals, node.FloatList("value_floats", {}));
      value.elements.assign(reals.begin(), reals.end());
      value.type = {DType::kF32, {static_cast<int64_t>(reals.size())}};
    } else {
      return node.UnimplementedError("has no attribute value_int, _ints, _float or _floats");
    }
    return value;
  }
};

absl::StatusOr<Types> InferConstant(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(Attributes value, Attributes::Of(node));
  return Types{std::move(value.type)};
}

absl::StatusOr<std::vector<Scalars>> FoldConstant(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(Attributes value, Attributes::Of(node));
  return std::vector<Scalars>{std::move(value.elements)};
}

absl::StatusOr<Types> InferConstantOfShape(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, node.Ints(0));
  if (!node.Has(1)) return Types{{DType::kF32, std::move(shape)}};
  if (node.Type(1).elements() == 1) return Types{{node.Type(1).dtype, std::move(shape)}};
  return node.InvalidError(absl::StrCat("its value is ", node.Type(1).ToText()));
}

absl::Status DefineConstantOfShape(const NodeView& node, StageWriter& writer) {
  const std::string value =
      node.Has(1) ? FirstAsNumber(node, writer, 1) : Literal(DType::kF32, 0.0);
  writer.Output(0, StageWriter::Axes(writer.OutputType(0).shape), value);
  return absl::OkStatus();
}

// The number of elements of Range, which may be far too large.
double CountOf(ir::Scalar start, ir::Scalar limit, ir::Scalar delta, bool is_float) {
  if (is_float) return std::ceil((limit.real() - start.real()) / delta.real());
  // Differences of i64 numbers need not fit i64, and not all are exact in f64.
  const auto from = static_cast<uint64_t>(start.whole()), to = static_cast<uint64_t>(limit.whole()),
             step = static_cast<uint64_t>(delta.whole());
  if (step == 0) return std::numeric_limits<double>::infinity();
  const bool ascends = delta.whole() > 0;
  if (ascends ? start.whole() >= limit.whole() : start.whole() <= limit.whole()) return 0;
  return static_cast<double>(((ascends ? to - from : from - to) - 1) /
                             (ascends ? step : 0 - step)) +
         1;
}

// The elements of Range.
absl::StatusOr<Scalars> RangeOf(const NodeView& node) {
  std::vector<ir::Scalar> bounds;
  for (int i = 0; i < 3; ++i) {
    if (node.Type(i).elements() != 1 || node.Type(i).dtype != node.Type(0).dtype) {
      return node.InvalidError("start, limit and delta must be scalars of one type");
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<ir::Scalar> elements, node.Elements(i));
    bounds.push_back(elements[0]);
  }
  const bool is_float = ir::IsFloat(node.Type(0).dtype);
  const double count = CountOf(bounds[0], bounds[1], bounds[2], is_float);
  if (!(std::abs(count) <= static_cast<double>(kMaxRange))) {
    return node.InvalidError(absl::StrCat("its range has more than ", kMaxRange, " elements"));
  }
  Scalars elements;
  for (int64_t i = 0; static_cast<double>(i) < count; ++i) {
    if (is_float) {
      elements.push_back(bounds[0].real() + static_cast<double>(i) * bounds[2].real());
    } else {
      elements.push_back(static_cast<int64_t>(static_cast<uint64_t>(bounds[0].whole()) +
                                              static_cast<uint64_t>(i) *
                                                  static_cast<uint64_t>(bounds[2].whole())));
    }
  }
  return elements;
}

absl::StatusOr<Types> InferRange(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const Scalars elements, RangeOf(node));
  return Types{{node.Type(0).dtype, {static_cast<int64_t>(elements.size())}}};
}

absl::StatusOr<std::vector<Scalars>> FoldRange(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(Scalars elements, RangeOf(node));
  return std::vector<Scalars>{std::move(elements)};
}

absl::StatusOr<Types> InferEyeLike(const NodeView& node) {
  if (node.Rank(0) != 2) return node.InvalidError("needs a matrix");
  if (!node.HasAttribute("dtype")) return Types{node.Type(0)};
  HONE_ASSIGN_OR_RETURN(const DType dtype, ElementTypeAttribute(node, "dtype"));
  return Types{{dtype, node.Shape(0)}};
}

absl::Status DefineEyeLike(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(int64_t k, node.Int("k", 0));
  k = std::min(std::max(k, -node.Shape(0)[0]), node.Shape(0)[1]);  // beyond, all elements are 0
  const DType dtype = writer.OutputType(0).dtype;
  writer.Output(0, {"i", "j"},
                absl::StrCat("(", Literal(dtype, 1), " where ", Offset("i", k), " == j else ",
                             Literal(dtype, 0), ")"));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> ConstantOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Constant", 0, 0, InferConstant, nullptr, "", FoldConstant},
      {"ConstantOfShape", 1, 2, InferConstantOfShape, DefineConstantOfShape,
       "the value is a second input of one element; 0.0 without it"},
      {"EyeLike", 1, 1, InferEyeLike, DefineEyeLike, "", nullptr, true},
      {"Range", 3, 3, InferRange, nullptr, "constant inputs", FoldRange},
      {"Shape", 1, 1, InferShape, nullptr, "", FoldShape, true},
      {"Size", 1, 1, InferSize, nullptr, "", FoldSize, true},
  };
  return kOperators;
}

}  // namespace hone::graph

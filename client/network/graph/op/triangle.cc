#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/axes.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

// Operators with triangular guards.
namespace hone::graph {
namespace {

absl::StatusOr<Types> InferTrilu(const NodeView& node) {
  if (node.Rank(0) < 2) return node.InvalidError("needs matrices");
  if (node.Has(1)) {
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> k, node.Ints(1));
    if (k.size() != 1) return node.InvalidError("k must be one number");
  }
  return SameType(node);
}

absl::Status DefineTrilu(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t upper, node.Int("upper", 1));
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  const std::string &i = axes[axes.size() - 2], &j = axes.back();
  int64_t k = node.Has(1) ? node.Ints(1)->front() : 0;
  const int64_t rows = node.Shape(0)[axes.size() - 2], columns = node.Shape(0).back();
  k = std::min(std::max(k, -rows), columns);  // beyond this, all or no elements are in the triangle
  const std::string guard =
      upper != 0 ? absl::StrCat(Offset(i, k), " <= ", j) : absl::StrCat(j, " <= ", Offset(i, k));
  writer.Output(0, axes, Guarded(writer.In(0, axes), {guard}, Literal(node.Type(0).dtype, 0)));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CumSumAxis(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> axis, node.Ints(1));
  if (axis.size() != 1) return node.InvalidError("the axis must be one number");
  return AxisOf(node, axis[0], node.Rank(0));
}

absl::StatusOr<Types> InferCumSum(const NodeView& node) {
  HONE_RETURN_IF_ERROR(CumSumAxis(node).status());
  return SameNumberType(node);
}

absl::Status DefineCumSum(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t axis, CumSumAxis(node));
  HONE_ASSIGN_OR_RETURN(const int64_t exclusive, node.Int("exclusive", 0));
  HONE_ASSIGN_OR_RETURN(const int64_t reverse, node.Int("reverse", 0));
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  std::vector<std::string> element = axes;
  element[axis] = "k";
  const absl::string_view order = exclusive != 0 ? " < " : " <= ";
  const std::string guard =
      reverse != 0 ? absl::StrCat(axes[axis], order, "k") : absl::StrCat("k", order, axes[axis]);
  writer.Output(
      0, axes,
      absl::StrCat(Reduction("sum", {"k"}, {node.Shape(0)[axis]}, {guard}), writer.In(0, element)));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> TriangleOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"CumSum", 2, 2, InferCumSum, DefineCumSum, "a constant axis; long rows are slow"},
      {"Trilu", 1, 2, InferTrilu, DefineTrilu, "a constant k"},
  };
  return kOperators;
}

}  // namespace hone::graph

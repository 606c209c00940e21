#include <string>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

// Normalizations by a norm, without a mean.
namespace hone::graph {
namespace {

using ir::DType;

absl::StatusOr<Types> InferLpNormalization(const NodeView& node) {
  HONE_RETURN_IF_ERROR(node.AxisAttribute("axis", -1, node.Rank(0)).status());
  HONE_ASSIGN_OR_RETURN(const int64_t p, node.Int("p", 2));
  if (p != 1 && p != 2) return node.InvalidError(absl::StrCat("p is ", p));
  return SameFloatType(node);
}

absl::Status DefineLpNormalization(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", -1, node.Rank(0)));
  HONE_ASSIGN_OR_RETURN(const int64_t p, node.Int("p", 2));
  const DType x = node.Type(0).dtype, dtype = ir::AccumulatorOf(x);
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  std::vector<std::string> element = axes, row = axes;
  std::vector<int64_t> shape = node.Shape(0);
  element[axis] = "k";
  shape[axis] = 1;
  row[axis] = "0";
  const std::string at = Convert(x, dtype, writer.In(0, element));
  const std::string sum = writer.Stage(
      "sum", axes, shape,
      absl::StrCat(Reduction("sum", {"k"}, {node.Shape(0)[axis]}),
                   p == 1 ? absl::StrCat("abs(", at, ")") : absl::StrCat(at, " * ", at)));
  const std::string norm =
      p == 1 ? Element(sum, row) : absl::StrCat("sqrt(", Element(sum, row), ")");
  // The quotient of a row without a length is 0.
  writer.Output(0, axes,
                Convert(dtype, x,
                        absl::StrCat("select(", Element(sum, row), " == 0.0, 0.0, ",
                                     Convert(x, dtype, writer.In(0, axes)), " / ", norm, ")")));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Size(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const int64_t size, node.Int("size", 0));
  if (0 < size && size <= ir::kMaxElements) return size;
  return node.InvalidError(absl::StrCat("size is ", size));
}

absl::StatusOr<Types> InferLRN(const NodeView& node) {
  HONE_RETURN_IF_ERROR(Size(node).status());
  if (node.Rank(0) < 2) return node.InvalidError("needs a tensor with channels");
  return SameFloatType(node);
}

// The squares of the neighbouring channels, (size - 1) / 2 before and size / 2 after.
absl::Status DefineLRN(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t size, Size(node));
  HONE_ASSIGN_OR_RETURN(const double alpha, node.Float("alpha", 1e-4));
  HONE_ASSIGN_OR_RETURN(const double beta, node.Float("beta", 0.75));
  HONE_ASSIGN_OR_RETURN(const double bias, node.Float("bias", 1));
  const DType x = node.Type(0).dtype, dtype = ir::AccumulatorOf(x);
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  std::vector<std::string> element = axes;
  element[1] = Affine({{1, axes[1]}, {1, "k"}}, -((size - 1) / 2));
  const std::string guard = absl::StrCat("0 <= ", element[1], " < ", node.Shape(0)[1]);
  const std::string at = Convert(x, dtype, writer.In(0, element));
  const std::string squares =
      writer.Stage("squares", axes, node.Shape(0),
                   absl::StrCat(Reduction("sum", {"k"}, {size}, {guard}), at, " * ", at));
  writer.Output(
      0, axes,
      Convert(dtype, x,
              absl::StrCat(Convert(x, dtype, writer.In(0, axes)), " * pow(", Literal(dtype, bias),
                           " + ", Literal(dtype, alpha / static_cast<double>(size)), " * ",
                           Element(squares, axes), ", ", Literal(dtype, -beta), ")")));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> NormOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"LRN", 1, 1, InferLRN, DefineLRN},
      {"LpNormalization", 1, 1, InferLpNormalization, DefineLpNormalization},
  };
  return kOperators;
}

}  // namespace hone::graph

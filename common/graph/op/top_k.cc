#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "common/base/status_macros.h"
#include "common/graph/op/axes.h"
#include "common/graph/op/element_type.h"
#include "common/graph/op/families.h"
#include "common/graph/op/formula.h"

namespace hone::graph {
namespace {

using ir::DType;

absl::StatusOr<Types> InferTopK(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", -1, node.Rank(0)));
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> k, node.Ints(1));
  std::vector<int64_t> shape = node.Shape(0);
  if (k.size() != 1 || k[0] < 0 || k[0] > shape[axis]) {
    return node.InvalidError(absl::StrCat("k must be one number from 0 to ", shape[axis]));
  }
  shape[axis] = k[0];
  return Types{{node.Type(0).dtype, shape}, {DType::kI64, shape}};
}

// The rank of an element is the number of elements that come before it: those that are larger, and
// equal ones at smaller indices. Result r is the element of rank r.
absl::Status DefineTopK(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", -1, node.Rank(0)));
  HONE_ASSIGN_OR_RETURN(const int64_t largest, node.Int("largest", 1));
  const std::vector<int64_t>& shape = node.Shape(0);
  const std::vector<std::string> axes = StageWriter::Axes(shape);
  std::vector<std::string> other = axes;
  other[axis] = "k";
  const std::string own = writer.In(0, axes), each = writer.In(0, other);
  const std::string rank = writer.Stage(
      "rank", axes, shape,
      absl::Substitute("$0i32($1 < $2 or ($3 == $4 and index(k) < index($5)))",
                       Reduction("sum", {"k"}, {shape[axis]}), largest != 0 ? own : each,
                       largest != 0 ? each : own, own, each, axes[axis]));
  const auto chosen = [&](absl::string_view value, absl::string_view zero) {
    return absl::Substitute("$0select($1 == i32(index($2)), $3, $4)",
                            Reduction("sum", {"k"}, {shape[axis]}), Element(rank, other),
                            axes[axis], value, zero);
  };
  if (writer.WantsOutput(0)) writer.Output(0, axes, chosen(each, Literal(node.Type(0).dtype, 0)));
  if (writer.WantsOutput(1)) writer.Output(1, axes, chosen("index(k)", "i64(0)"));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> TopKOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"TopK", 2, 2, InferTopK, DefineTopK,
       "a constant k; long axes are slow; the result is always sorted"},
  };
  return kOperators;
}

}  // namespace hone::graph

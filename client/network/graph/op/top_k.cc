#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "client/network/graph/op/axes.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

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

// Returns whether the element at k of a row comes before the one at `i`: a larger one, or an equal
// one at a smaller index. NaN counts as larger than every number, and equal to itself.
std::string IsBefore(bool is_float, const std::string& own, const std::string& each,
                     const std::string& i, absl::string_view smaller_index) {
  const std::string nearer =
      absl::Substitute(smaller_index, "index(k)", absl::StrCat("index(", i, ")"));
  if (!is_float) return absl::Substitute("$0 < $1 or ($0 == $1 and $2)", own, each, nearer);
  // With infinity instead of an own NaN, exactly the elements that are NaN are larger.
  return absl::Substitute(
      "not($1 <= select($0 == $0, $0, inf)) and ($0 == $0 or $2) or ($0 == $1 and $2)", own, each,
      nearer);
}

// The rank of an element is the number of elements that come before it in the order from the
// largest to the smallest. Result r is the element of rank r. The smallest elements are the last
// ones of the order in which the larger index comes before a smaller one.
absl::Status DefineTopK(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t axis, node.AxisAttribute("axis", -1, node.Rank(0)));
  HONE_ASSIGN_OR_RETURN(const int64_t largest, node.Int("largest", 1));
  const std::vector<int64_t>& shape = node.Shape(0);
  const std::vector<std::string> axes = StageWriter::Axes(shape);
  std::vector<std::string> other = axes;
  other[axis] = "k";
  const std::string own = writer.In(0, axes), each = writer.In(0, other);
  const std::string rank =
      writer.Stage("rank", axes, shape,
                   absl::StrCat(Reduction("sum", {"k"}, {shape[axis]}), "i32(",
                                IsBefore(ir::IsFloat(node.Type(0).dtype), own, each, axes[axis],
                                         largest != 0 ? "$0 < $1" : "$1 < $0"),
                                ")"));
  const std::string wanted =
      largest != 0 ? axes[axis] : Affine({{-1, axes[axis]}}, shape[axis] - 1);
  const auto chosen = [&](absl::string_view value, absl::string_view zero) {
    return absl::Substitute("$0select($1 == i32(index($2)), $3, $4)",
                            Reduction("sum", {"k"}, {shape[axis]}), Element(rank, other), wanted,
                            value, zero);
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

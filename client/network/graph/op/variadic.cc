#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "absl/types/span.h"
#include "client/network/graph/op/axes.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

// Functions of any number of elements, with NumPy's broadcasting, and Where.
namespace hone::graph {
namespace {

using ir::DType;

absl::StatusOr<std::vector<int64_t>> BroadcastAll(const NodeView& node) {
  std::vector<int64_t> shape = node.Shape(0);
  for (int i = 1; i < node.inputs(); ++i) {
    if (!node.Has(i)) return node.InvalidError(absl::StrCat("input ", i, " is missing"));
    HONE_ASSIGN_OR_RETURN(shape, Broadcast(node, shape, node.Shape(i)));
  }
  return shape;
}

// A workload has a limited number of tensors, and its expressions a limited depth.
constexpr int kMaxOperands = 200, kMaxChain = 16;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

absl::StatusOr<Types> InferNumbers(const NodeView& node) {
  if (node.inputs() > kMaxOperands) {
    return node.UnimplementedError(
        absl::StrCat("more than ", kMaxOperands, " inputs are not supported"));
  }
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  HONE_RETURN_IF_ERROR(NeedOneType(node, 0, node.inputs() - 1));
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, BroadcastAll(node));
  return Types{{node.Type(0).dtype, std::move(shape)}};
}

absl::StatusOr<Types> InferFloats(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedFloat(node, 0));
  return InferNumbers(node);
}

// Combines the elements of the inputs [first, last), two at a time, by a formula of $0 and $1.
std::string Join(const NodeView& node, StageWriter& writer, const std::vector<std::string>& axes,
                 absl::string_view formula, int first, int last) {
  if (last - first > kMaxChain) {
    const int middle = (first + last) / 2;
    return absl::Substitute(
        formula, absl::StrCat("(", Join(node, writer, axes, formula, first, middle), ")"),
        absl::StrCat("(", Join(node, writer, axes, formula, middle, last), ")"));
  }
  std::string value = BroadcastElement(writer, first, node.Shape(first), axes);
  for (int i = first + 1; i < last; ++i) {
    value = absl::Substitute(formula, value, BroadcastElement(writer, i, node.Shape(i), axes));
  }
  return value;
}

template <const char* kFormula>
absl::Status MapAll(const NodeView& node, StageWriter& writer) {
  const std::vector<std::string> axes = StageWriter::Axes(writer.OutputType(0).shape);
  writer.Output(0, axes, Join(node, writer, axes, kFormula, 0, node.inputs()));
  return absl::OkStatus();
}

constexpr char kMax[] = "max($0, $1)";
constexpr char kMin[] = "min($0, $1)";
constexpr char kSum[] = "$0 + $1";

// Whether an input may have an element that is NaN.
bool MayBeNaN(const NodeView& node, int input) {
  if (!ir::IsFloat(node.Type(input).dtype)) return false;
  if (!node.IsConstant(input) || node.Type(input).elements() != 1) return true;
  return std::isnan(node.Elements(input)->front().real());
}

// Returns a formula for whether all values are numbers: "(A[i] == A[i] and B[i] == B[i])".
std::string AreNumbers(absl::Span<const std::string> values) {
  if (values.size() == 1) return absl::StrCat(values[0], " == ", values[0]);
  const size_t middle = values.size() / 2;
  return absl::StrCat("(", AreNumbers(values.first(middle)), " and ",
                      AreNumbers(values.subspan(middle)), ")");
}

// NaN in any input gives NaN. The functions keep it in their first operand and ignore it in their
// second, so the inputs after the first one need a check.
template <const char* kFormula>
absl::Status DefineExtreme(const NodeView& node, StageWriter& writer) {
  const std::vector<std::string> axes = StageWriter::Axes(writer.OutputType(0).shape);
  const std::string extreme = Join(node, writer, axes, kFormula, 0, node.inputs());
  std::vector<std::string> checked;
  for (int i = 1; i < node.inputs(); ++i) {
    if (MayBeNaN(node, i)) checked.push_back(BroadcastElement(writer, i, node.Shape(i), axes));
  }
  if (checked.empty()) {
    writer.Output(0, axes, extreme);
    return absl::OkStatus();
  }
  const std::string nan = checked.size() == 1 ? checked[0] : Literal(node.Type(0).dtype, kNaN);
  writer.Output(0, axes,
                absl::StrCat("select(", AreNumbers(checked), ", ", extreme, ", ", nan, ")"));
  return absl::OkStatus();
}

absl::Status DefineMean(const NodeView& node, StageWriter& writer) {
  const std::vector<std::string> axes = StageWriter::Axes(writer.OutputType(0).shape);
  writer.Output(0, axes,
                absl::StrCat("(", Join(node, writer, axes, kSum, 0, node.inputs()), ") / ",
                             node.inputs(), ".0"));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferWhere(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedType(node, 0, DType::kBool));
  HONE_RETURN_IF_ERROR(NeedOneType(node, 1, 2));
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, BroadcastAll(node));
  return Types{{node.Type(1).dtype, std::move(shape)}};
}

absl::Status DefineWhere(const NodeView& node, StageWriter& writer) {
  const std::vector<std::string> axes = StageWriter::Axes(writer.OutputType(0).shape);
  const auto element = [&](int input) {
    return BroadcastElement(writer, input, node.Shape(input), axes);
  };
  writer.Output(0, axes,
                absl::StrCat("select(", element(0), ", ", element(1), ", ", element(2), ")"));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> VariadicOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Max", 1, -1, InferNumbers, DefineExtreme<kMax>}, {"Mean", 1, -1, InferFloats, DefineMean},
      {"Min", 1, -1, InferNumbers, DefineExtreme<kMin>}, {"Sum", 1, -1, InferFloats, MapAll<kSum>},
      {"Where", 3, 3, InferWhere, DefineWhere},
  };
  return kOperators;
}

}  // namespace hone::graph

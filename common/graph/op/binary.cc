#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "common/base/status_macros.h"
#include "common/graph/op/broadcast.h"
#include "common/graph/op/element_type.h"
#include "common/graph/op/families.h"
#include "common/graph/op/formula.h"

// Elementwise operators with two inputs, and NumPy's broadcasting.
namespace hone::graph {
namespace {

using ir::DType;

absl::StatusOr<Types> BroadcastTo(const NodeView& node, DType dtype) {
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, Broadcast(node, node.Shape(0), node.Shape(1)));
  return Types{{dtype, std::move(shape)}};
}

absl::StatusOr<Types> InferArithmetic(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  HONE_RETURN_IF_ERROR(NeedOneType(node, 0, 1));
  return BroadcastTo(node, node.Type(0).dtype);
}

absl::StatusOr<Types> InferComparison(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedOneType(node, 0, 1));
  return BroadcastTo(node, DType::kBool);
}

absl::StatusOr<Types> InferOrder(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  return InferComparison(node);
}

absl::StatusOr<Types> InferLogic(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedType(node, 0, DType::kBool));
  return InferComparison(node);
}

absl::StatusOr<Types> InferBitShift(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedType(node, 0, DType::kU8));
  return InferArithmetic(node);
}

absl::StatusOr<Types> InferPow(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  HONE_RETURN_IF_ERROR(NeedNumber(node, 1));
  return BroadcastTo(node, node.Type(0).dtype);
}

// Defines each element of the output by `formula`, in which $0 and $1 are the elements of the
// inputs.
absl::Status MapPairTo(const NodeView& node, StageWriter& writer, absl::string_view formula) {
  const std::vector<std::string> axes = StageWriter::Axes(writer.OutputType(0).shape);
  const std::string a = BroadcastElement(writer, 0, node.Shape(0), axes);
  const std::string b = BroadcastElement(writer, 1, node.Shape(1), axes);
  writer.Output(0, axes, absl::Substitute(formula, a, b));
  return absl::OkStatus();
}

template <const char* kFormula>
absl::Status MapPair(const NodeView& node, StageWriter& writer) {
  return MapPairTo(node, writer, kFormula);
}

absl::Status DefineBitShift(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const std::string direction, node.String("direction", ""));
  if (direction == "LEFT") return MapPairTo(node, writer, "$0 << $1");
  if (direction == "RIGHT") return MapPairTo(node, writer, "$0 >> $1");
  return node.InvalidError(absl::StrCat("direction is '", direction, "' instead of LEFT or RIGHT"));
}

// Without the attribute fmod, the remainder of integers has the sign of the divisor, as in Python.
absl::Status DefineMod(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t fmod, node.Int("fmod", 0));
  if (ir::IsFloat(node.Type(0).dtype)) {
    if (fmod == 0) return node.InvalidError("Mod of floats needs fmod=1");
    return MapPairTo(node, writer, "$0 - trunc($0 / $1) * $1");
  }
  constexpr absl::string_view kRemainder = "($0 - $0 / $1 * $1)";
  if (fmod != 0 || node.Type(0).dtype == DType::kU8) return MapPairTo(node, writer, kRemainder);
  return MapPairTo(
      node, writer,
      absl::Substitute("select($0 < 0 and 0 < $$1 or 0 < $0 and $$1 < 0, $0 + $$1, $0)",
                       kRemainder));
}

// Returns a formula for the power with this constant exponent; "" if it needs pow().
absl::string_view PowerBy(double exponent, bool is_float) {
  if (exponent == 1) return "$0";
  if (exponent == 2) return "$0 * $0";
  if (exponent == 3) return "$0 * $0 * $0";
  if (exponent == 0.5 && is_float) return "sqrt($0)";
  if (exponent == -1 && is_float) return "1.0 / $0";
  return "";
}

absl::Status DefinePow(const NodeView& node, StageWriter& writer) {
  const DType base = node.Type(0).dtype, exponent = node.Type(1).dtype;
  if (node.IsConstant(1) && node.Type(1).elements() == 1) {
    const absl::string_view formula = PowerBy(node.Elements(1)->front().real(), ir::IsFloat(base));
    const std::vector<std::string> axes = StageWriter::Axes(writer.OutputType(0).shape);
    if (!formula.empty()) {
      const std::string element = BroadcastElement(writer, 0, node.Shape(0), axes);
      writer.Output(0, axes, absl::Substitute(formula, element));
      return absl::OkStatus();
    }
  }
  if (ir::IsFloat(base)) {
    return MapPairTo(node, writer, absl::StrCat("pow($0, ", Convert(exponent, base, "$1"), ")"));
  }
  // An integer to an integer power must be exact, but pow() may return a number just below it,
  // which the cast would truncate.
  const absl::string_view type = ir::DTypeName(base);
  return MapPairTo(node, writer,
                   ir::IsFloat(exponent) ? absl::StrCat(type, "(pow(f64($0), f64($1)))")
                                         : absl::StrCat(type, "(round(pow(f64($0), f64($1))))"));
}

constexpr char kAdd[] = "$0 + $1";
constexpr char kAnd[] = "$0 and $1";
constexpr char kDiv[] = "$0 / $1";
constexpr char kEqual[] = "$0 == $1";
constexpr char kGreater[] = "$1 < $0";
constexpr char kGreaterOrEqual[] = "$1 <= $0";
constexpr char kLess[] = "$0 < $1";
constexpr char kLessOrEqual[] = "$0 <= $1";
constexpr char kMul[] = "$0 * $1";
constexpr char kOr[] = "$0 or $1";
constexpr char kSub[] = "$0 - $1";
constexpr char kXor[] = "not($0 == $1)";

}  // namespace

absl::Span<const OperatorDef> BinaryOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Add", 2, 2, InferArithmetic, MapPair<kAdd>},
      {"And", 2, 2, InferLogic, MapPair<kAnd>},
      {"BitShift", 2, 2, InferBitShift, DefineBitShift, "u8"},
      {"Div", 2, 2, InferArithmetic, MapPair<kDiv>},
      {"Equal", 2, 2, InferComparison, MapPair<kEqual>},
      {"Greater", 2, 2, InferOrder, MapPair<kGreater>},
      {"GreaterOrEqual", 2, 2, InferOrder, MapPair<kGreaterOrEqual>},
      {"Less", 2, 2, InferOrder, MapPair<kLess>},
      {"LessOrEqual", 2, 2, InferOrder, MapPair<kLessOrEqual>},
      {"Mod", 2, 2, InferArithmetic, DefineMod},
      {"Mul", 2, 2, InferArithmetic, MapPair<kMul>},
      {"Or", 2, 2, InferLogic, MapPair<kOr>},
      {"Pow", 2, 2, InferPow, DefinePow},
      {"Sub", 2, 2, InferArithmetic, MapPair<kSub>},
      {"Xor", 2, 2, InferLogic, MapPair<kXor>},
  };
  return kOperators;
}

}  // namespace hone::graph

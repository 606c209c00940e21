#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "client/network/graph/op/axes.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

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
  HONE_ASSIGN_OR_RETURN(const std::string direction, node.String("direction", ""));
  if (direction == "LEFT" || direction == "RIGHT") return InferArithmetic(node);
  return node.InvalidError(absl::StrCat("direction is '", direction, "' instead of LEFT or RIGHT"));
}

absl::StatusOr<Types> InferMod(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const int64_t fmod, node.Int("fmod", 0));
  if (fmod != 0 || !ir::IsFloat(node.Type(0).dtype)) return InferArithmetic(node);
  return node.InvalidError("Mod of floats needs fmod=1");
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
  return MapPairTo(node, writer, direction == "LEFT" ? "$0 << $1" : "$0 >> $1");
}

// The range of a float type: all of its numbers are multiples of 2^least and below 2^most. They
// have `digits` significant bits.
struct FloatRange {
  int least, most, digits;
};

FloatRange RangeOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {-24, 16, 11};
    case DType::kBF16:
      return {-133, 128, 8};
    case DType::kF8E4M3:
      return {-9, 9, 4};
    case DType::kF8E5M2:
      return {-16, 16, 3};
    default:
      return {-149, 128, 24};
  }
}

// The remainder of a division with the sign of the dividend, as C's fmod(). It is exact, although
// the quotient may need hundreds of bits: in f64, multiples of the divisor by powers of two, from
// the largest to the smallest, are subtracted. A step leaves less than its multiple. Its quotient
// has so few bits that the product with the divisor is exact, and that the quotient of numbers that
// are not multiples never rounds up to the next whole number.
absl::Status DefineFloatMod(const NodeView& node, StageWriter& writer) {
  const DType dtype = node.Type(0).dtype;
  const bool is_long = dtype == DType::kF64;  // its remainder is rounded
  const FloatRange range = RangeOf(dtype);
  int least = range.least, digits = range.digits;  // of the divisor
  if (node.IsConstant(1) && node.Type(1).elements() == 1) {
    const double divisor = std::fabs(node.Elements(1)->front().real());
    if (std::isfinite(divisor) && divisor > 0) {
      least = std::ilogb(divisor);
      digits = 1;
      for (double rest = std::ldexp(divisor, -least); rest != std::trunc(rest); rest *= 2) ++digits;
    }
  }
  const int bits = 52 - digits;
  // A division by a power of two is exact, and so are its product and difference.
  const int steps =
      digits == 1 || is_long ? 1 : static_cast<int>(ir::CeilDivInt(range.most - least, bits));
  std::vector<int64_t> shape = writer.OutputType(0).shape;
  const std::vector<std::string> axes = StageWriter::Axes(shape);
  const auto let = [&](absl::string_view name, const std::string& value) {
    return Element(writer.Stage(name, axes, shape, value), axes);
  };
  const std::string x = BroadcastElement(writer, 0, node.Shape(0), axes);
  const std::string y = BroadcastElement(writer, 1, node.Shape(1), axes);
  // An infinite divisor is larger than every number, and 2^200 is, too.
  const std::string divisor =
      let("divisor",
          is_long ? absl::StrCat("abs(", y, ")")
                  : absl::Substitute("min(abs(f64($0)), $1)", y, StageWriter::Number(0x1p200)));
  std::string rest = absl::StrCat("abs(", Convert(dtype, DType::kF64, x), ")");
  for (int step = steps - 1; step >= 0; --step) {
    const std::string multiple =
        step == 0 ? divisor
                  : absl::StrCat("(", divisor, " * ",
                                 StageWriter::Number(std::ldexp(1.0, bits * step)), ")");
    rest = let("rest", absl::Substitute("$0 - trunc($0 / $1) * $1", rest, multiple));
  }
  if (is_long) {  // the quotient may have been rounded up
    rest = let("rest", absl::Substitute("select($1 == inf and abs($2) < inf, abs($2), "
                                        "select($0 < 0.0, $0 + $1, $0))",
                                        rest, divisor, x));
  }
  // The remainder of -0 is -0.
  writer.Output(0, axes,
                Convert(DType::kF64, dtype,
                        absl::Substitute("select($0 < 0.0, -$1, select($0 == 0.0 and $1 == 0.0, "
                                         "$2, $1))",
                                         x, rest, Convert(dtype, DType::kF64, x))));
  return absl::OkStatus();
}

// Without the attribute fmod, the remainder of integers has the sign of the divisor, as in Python.
absl::Status DefineMod(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t fmod, node.Int("fmod", 0));
  if (ir::IsFloat(node.Type(0).dtype)) return DefineFloatMod(node, writer);
  constexpr absl::string_view kRemainder = "($0 - $0 / $1 * $1)";
  if (fmod != 0 || node.Type(0).dtype == DType::kU8) return MapPairTo(node, writer, kRemainder);
  return MapPairTo(
      node, writer,
      absl::Substitute("select($0 < 0 and 0 < $$1 or 0 < $0 and $$1 < 0, $0 + $$1, $0)",
                       kRemainder));
}

// Returns a formula for the power with this constant exponent; "" if it needs pow(), which is not
// exact for whole numbers beyond 2^53.
std::string PowerBy(double exponent, bool is_float) {
  if (exponent == 1) return "$0";
  if (exponent == 2) return "$0 * $0";
  if (exponent == 3) return "$0 * $0 * $0";
  // Unlike sqrt(), pow() is +inf at -inf, and +0 at -0.
  if (exponent == 0.5 && is_float) return "sqrt(select($0 == -inf or $0 == 0.0, abs($0), $0))";
  if (exponent == -1 && is_float) return "1.0 / $0";
  constexpr double kMost = 62;  // 2^63 is beyond i64
  if (!is_float && 3 < exponent && exponent <= kMost && exponent == std::trunc(exponent)) {
    return absl::StrJoin(std::vector<absl::string_view>(static_cast<size_t>(exponent), "$0"),
                         " * ");
  }
  return "";
}

absl::Status DefinePow(const NodeView& node, StageWriter& writer) {
  const DType base = node.Type(0).dtype, exponent = node.Type(1).dtype;
  if (node.IsConstant(1) && node.Type(1).elements() == 1) {
    const std::string formula = PowerBy(node.Elements(1)->front().real(), ir::IsFloat(base));
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
  // A whole number to a whole power is whole, but pow() may return a number just below it, which
  // the cast would truncate.
  const absl::string_view type = ir::DTypeName(base);
  const absl::string_view power = "pow(f64($0), f64($1))";
  return MapPairTo(node, writer,
                   ir::IsFloat(exponent) ? absl::StrCat(type, "(select($1 == trunc($1), round(",
                                                        power, "), ", power, "))")
                                         : absl::StrCat(type, "(round(", power, "))"));
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
      {"Mod", 2, 2, InferMod, DefineMod, "floats with fmod=1; the remainder of f64 is rounded"},
      {"Mul", 2, 2, InferArithmetic, MapPair<kMul>},
      {"Or", 2, 2, InferLogic, MapPair<kOr>},
      {"Pow", 2, 2, InferPow, DefinePow},
      {"Sub", 2, 2, InferArithmetic, MapPair<kSub>},
      {"Xor", 2, 2, InferLogic, MapPair<kXor>},
  };
  return kOperators;
}

}  // namespace hone::graph

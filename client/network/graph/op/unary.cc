#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

// Functions of one element without attributes (or with attributes that do not change the result).

using ir::DType;

absl::StatusOr<Types> InferBool(const NodeView& node) {
  return Types{{DType::kBool, node.Shape(0)}};
}

absl::StatusOr<Types> InferNot(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedType(node, 0, DType::kBool));
  return InferBool(node);
}

absl::StatusOr<Types> InferIsNaN(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedFloat(node, 0));
  return InferBool(node);
}

// Writes the elements of the output as a formula of $0, the element of the input.
absl::Status MapTo(const NodeView& node, StageWriter& writer, absl::string_view formula) {
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  writer.Output(0, axes, absl::Substitute(formula, writer.In(0, axes)));
  return absl::OkStatus();
}

template <const char* kFormula>
absl::Status Map(const NodeView& node, StageWriter& writer) {
  return MapTo(node, writer, kFormula);
}

absl::Status DefineSign(const NodeView& node, StageWriter& writer) {
  const DType dtype = node.Type(0).dtype;
  if (dtype == DType::kU8) return MapTo(node, writer, "min($0, 1)");
  const absl::string_view type = ir::DTypeName(dtype);
  return MapTo(node, writer,
               absl::StrCat("select(0 < $0, ", type, "(1), select($0 < 0, ", type, "(-1), $0))"));
}

absl::Status DefineIsInf(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const int64_t positive, node.Int("detect_positive", 1));
  HONE_ASSIGN_OR_RETURN(const int64_t negative, node.Int("detect_negative", 1));
  return MapTo(node, writer,
               positive != 0 && negative != 0 ? "$0 == inf or $0 == -inf"
               : positive != 0                ? "$0 == inf"
               : negative != 0                ? "$0 == -inf"
                                              : "$0 == inf and $0 == -inf");
}

constexpr char kAbs[] = "abs($0)";
constexpr char kCeil[] = "ceil($0)";
constexpr char kErf[] = "erf($0)";
constexpr char kExp[] = "exp($0)";
constexpr char kFloor[] = "floor($0)";
constexpr char kIsNaN[] = "not($0 == $0)";
constexpr char kLog[] = "log($0)";
constexpr char kNeg[] = "-$0";
constexpr char kNot[] = "not($0)";
constexpr char kReciprocal[] = "1.0 / $0";
constexpr char kRelu[] = "max($0, 0)";
constexpr char kRound[] = "round($0)";
constexpr char kSqrt[] = "sqrt($0)";

absl::StatusOr<Types> InferTo(const NodeView& node, DType dtype) {
  HONE_ASSIGN_OR_RETURN(const int64_t saturate, node.Int("saturate", 1));
  if (IsShortFloat(dtype) && saturate == 0) {
    return node.UnimplementedError("8-bit floats without saturation are not supported");
  }
  return Types{{dtype, node.Shape(0)}};
}

absl::StatusOr<Types> InferCast(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const DType dtype, ElementTypeAttribute(node, "to"));
  return InferTo(node, dtype);
}

absl::StatusOr<Types> InferCastLike(const NodeView& node) {
  return InferTo(node, node.Type(1).dtype);
}

absl::Status DefineCast(const NodeView& node, StageWriter& writer) {
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  const DType from = node.Type(0).dtype, to = writer.OutputType(0).dtype;
  std::string value = writer.In(0, axes);
  // In ONNX, infinities saturate like large numbers.
  if (to == DType::kF8E5M2 && from != to) {
    value = absl::StrCat("min(max(", Convert(from, DType::kF32, value), ", -57344.0), 57344.0)");
    writer.Output(0, axes, absl::StrCat("f8e5m2(", value, ")"));
    return absl::OkStatus();
  }
  writer.Output(0, axes, Convert(from, to, std::move(value)));
  return absl::OkStatus();
}

// Trigonometric and hyperbolic functions and their inverses, which the language of workloads does
// not have. The argument is reduced to a small range, where a polynomial is accurate. The
// polynomials minimize the largest relative error, and were found by weighted least squares.
//
// Both branches of a select() are finite and well-conditioned, because the check of a kernel bounds
// the rounding errors of the whole formula.

// Writes the stages of a function of one element. Everything is computed in f32.
class Function {
 public:
  Function(const NodeView& node, StageWriter& writer)
      : writer_(writer),
        dtype_(node.Type(0).dtype),
        shape_(node.Shape(0)),
        axes_(StageWriter::Axes(shape_)) {
    if (shape_.empty()) shape_ = {1};
    x_ = Convert(dtype_, DType::kF32, writer.In(0, axes_));
  }

  const std::string& x() const { return x_; }
  // Writes an intermediate stage, and returns its element at the position of the output.
  std::string Let(absl::string_view name, absl::string_view value) {
    return Element(writer_.Stage(name, axes_, shape_, value), axes_);
  }
  absl::Status Result(const std::string& value) {
    writer_.Output(0, axes_, Convert(DType::kF32, dtype_, value));
    return absl::OkStatus();
  }

 private:
  StageWriter& writer_;
  const DType dtype_;
  std::vector<int64_t> shape_;
  const std::vector<std::string> axes_;
  std::string x_;
};

absl::StatusOr<Types> InferFunction(const NodeView& node) {
  const DType dtype = node.Type(0).dtype;
  if (dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16) {
    return Types{node.Type(0)};
  }
  return node.UnimplementedError(
      absl::StrCat("its elements are ", ir::DTypeName(dtype), "; f16, bf16 and f32 are supported"));
}

// x - n·π, where n is a multiple of 1/2. π is split into parts: the first ones have few bits, so
// that their products with n are exact.
std::string WithoutTurns(absl::string_view x, absl::string_view n) {
  return absl::Substitute(
      "$0 - $1 * 3.140625 - $1 * 0.0009670257568359375 - $1 * 6.2771141529083251953e-07 - "
      "$1 * 1.2154201256553420763e-10",
      x, n);
}

// The sine of r in [-π/2, π/2], with its square z. The error is below 5e-9.
std::string SineOf(absl::string_view r, absl::string_view z) {
  return absl::Substitute(
      "$0 + $0 * $1 * (-0.16666661202907562 + $1 * (0.008333087898790836 + $1 * "
      "(-0.00019811112724710256 + $1 * 2.608932391012786e-06)))",
      r, z);
}

// 1 for even n, and -1 for odd n.
std::string SignOf(absl::string_view n) {
  return absl::Substitute("(1.0 - 2.0 * ($0 - 2.0 * floor($0 * 0.5)))", n);
}

absl::Status DefineSin(const NodeView& node, StageWriter& writer) {
  Function f(node, writer);
  const std::string n = f.Let("n", absl::StrCat("round(", f.x(), " * 0.31830988618379069)"));
  const std::string r = f.Let("r", WithoutTurns(f.x(), n));
  const std::string z = f.Let("z", absl::StrCat(r, " * ", r));
  return f.Result(absl::StrCat("(", SineOf(r, z), ") * ", SignOf(n)));
}

// With x = (n + 1/2)·π + r, the cosine of x is the sine of r times -1 for even n.
absl::Status DefineCos(const NodeView& node, StageWriter& writer) {
  Function f(node, writer);
  const std::string n = f.Let("n", absl::StrCat("round(", f.x(), " * 0.31830988618379069 - 0.5)"));
  const std::string r = f.Let("r", WithoutTurns(f.x(), absl::StrCat("(", n, " + 0.5)")));
  const std::string z = f.Let("z", absl::StrCat(r, " * ", r));
  return f.Result(absl::StrCat("(", SineOf(r, z), ") * -", SignOf(n)));
}

// With x = n·π/2 + r, the tangent of x is that of r for even n, and -1 divided by it for odd n.
absl::Status DefineTan(const NodeView& node, StageWriter& writer) {
  Function f(node, writer);
  const std::string n = f.Let("n", absl::StrCat("round(", f.x(), " * 0.63661977236758138)"));
  const std::string r = f.Let("r", WithoutTurns(f.x(), absl::StrCat("(", n, " * 0.5)")));
  const std::string z = f.Let("z", absl::StrCat(r, " * ", r));
  const std::string s = f.Let("s", SineOf(r, z));
  const std::string c =
      f.Let("c", absl::Substitute("1.0 - 0.5 * $0 + $0 * $0 * (0.04166664555668831 + $0 * "
                                  "(-0.001388736767694354 + $0 * 2.443845005473122e-05))",
                                  z));
  const std::string odd = absl::StrCat(SignOf(n), " < 0.0");
  return f.Result(absl::Substitute("select($0, -$2, $1) / select($0, $1, $2)", odd, s, c));
}

// The arcsine of t in [0, 1/2].
std::string ArcsineOf(absl::string_view t) {
  return absl::Substitute(
      "$0 + $0 * ($0 * $0) * (0.16666753590106964 + $0 * $0 * (0.07495241612195969 + $0 * $0 * "
      "(0.04547709599137306 + $0 * $0 * (0.02414761297404766 + $0 * $0 * 0.04221854731440544))))",
      t);
}

// asin(a) = π/2 - 2·asin(√((1 - a)/2)) for a above 1/2.
absl::Status DefineAsin(const NodeView& node, StageWriter& writer) {
  Function f(node, writer);
  const std::string a = f.Let("a", absl::StrCat("abs(", f.x(), ")"));
  const std::string t =
      f.Let("t", absl::Substitute("select(0.5 < $0, sqrt((1.0 - $0) * 0.5), $0)", a));
  const std::string y = f.Let("y", ArcsineOf(t));
  const std::string all =
      f.Let("all", absl::Substitute("select(0.5 < $0, 1.57079632679489662 - 2.0 * $1, $1)", a, y));
  return f.Result(absl::Substitute("select($0 < 0.0, -$1, $1)", f.x(), all));
}

// acos(x) is 2·asin(√((1 - x)/2)) above 1/2, π minus the same of -x below -1/2, and else
// π/2 - asin(x).
absl::Status DefineAcos(const NodeView& node, StageWriter& writer) {
  Function f(node, writer);
  const std::string a = f.Let("a", absl::StrCat("abs(", f.x(), ")"));
  const std::string t =
      f.Let("t", absl::Substitute("select(0.5 < $0, sqrt((1.0 - $0) * 0.5), $0)", a));
  const std::string y = f.Let("y", ArcsineOf(t));
  return f.Result(absl::Substitute(
      "select(0.5 < $1, select($0 < 0.0, 3.14159265358979324 - 2.0 * $2, 2.0 * $2), "
      "1.57079632679489662 - select($0 < 0.0, -$2, $2))",
      f.x(), a, y));
}

// Above tan(π/8), atan(a) is π/4 + atan((a - 1)/(a + 1)), and above tan(3π/8), it is
// π/2 - atan(1/a).
absl::Status DefineAtan(const NodeView& node, StageWriter& writer) {
  Function f(node, writer);
  const std::string a = f.Let("a", absl::StrCat("abs(", f.x(), ")"));
  const std::string t =
      f.Let("t", absl::Substitute("select(2.41421356237309505 < $0, -1.0, select("
                                  "0.414213562373095049 < $0, $0 - 1.0, $0)) / select("
                                  "2.41421356237309505 < $0, $0, select(0.414213562373095049 < $0, "
                                  "$0 + 1.0, 1.0))",
                                  a));
  const std::string base = absl::Substitute(
      "select(2.41421356237309505 < $0, 1.57079632679489662, select(0.414213562373095049 < $0, "
      "0.785398163397448310, 0.0))",
      a);
  const std::string y = f.Let(
      "y", absl::Substitute("$1 + ($0 + $0 * ($0 * $0) * (-0.33332955837249756 + $0 * $0 * "
                            "(0.19977925717830658 + $0 * $0 * (-0.13879846036434174 + $0 * $0 * "
                            "0.0806029811501503))))",
                            t, base));
  return f.Result(absl::Substitute("select($0 < 0.0, -$1, $1)", f.x(), y));
}

// (exp(a) ± exp(-a)) / 2 with h = exp(a/2), so that it overflows only where the result does.
constexpr char kHyperbolic[] = "0.5 * $0 * $0 $1 0.5 / $0 / $0";

absl::Status DefineSinh(const NodeView& node, StageWriter& writer) {
  Function f(node, writer);
  const std::string h = f.Let("h", absl::StrCat("exp(0.5 * abs(", f.x(), "))"));
  const std::string y = f.Let("y", absl::Substitute(kHyperbolic, h, "-"));
  // Near 0, the difference of the exponentials would lose digits.
  return f.Result(absl::Substitute(
      "select(abs($0) < 1.0, $0 + $0 * ($0 * $0) * (0.1666666716337204 + $0 * $0 * "
      "(0.008333350531756878 + $0 * $0 * (0.0001983606634894386 + $0 * $0 * "
      "2.817439735736116e-06))), select($0 < 0.0, -$1, $1))",
      f.x(), y));
}

absl::Status DefineCosh(const NodeView& node, StageWriter& writer) {
  Function f(node, writer);
  const std::string h = f.Let("h", absl::StrCat("exp(0.5 * abs(", f.x(), "))"));
  return f.Result(absl::Substitute(kHyperbolic, h, "+"));
}

// log(1 + u) for u of at least 0. A small u loses digits in 1 + u; with q = u / (2 + u), the
// logarithm is 2·atanh(q), a short series.
std::string LogOfMore(Function& f, const std::string& u) {
  const std::string q = f.Let("q", absl::Substitute("min($0, 0.5) / (2.0 + min($0, 0.5))", u));
  return absl::Substitute(
      "select($0 < 0.5, 2.0 * $1 + 2.0 * $1 * ($1 * $1) * (0.333333333333333333 + $1 * $1 * (0.2 + "
      "$1 * $1 * (0.142857142857142857 + $1 * $1 * 0.111111111111111111))), log(1.0 + $0))",
      u, q);
}

// Above this number, x² + 1 rounds to x².
constexpr char kLarge[] = "1e8";

absl::Status DefineAsinh(const NodeView& node, StageWriter& writer) {
  Function f(node, writer);
  const std::string a = f.Let("a", absl::StrCat("abs(", f.x(), ")"));
  const std::string b = f.Let("b", absl::Substitute("min($0, $1)", a, kLarge));
  const std::string u =
      f.Let("u", absl::Substitute("$0 + $0 * $0 / (1.0 + sqrt(1.0 + $0 * $0))", b));
  const std::string y =
      f.Let("y", absl::Substitute("select($0 < $1, $2, log($0) + 0.693147180559945309)", a, kLarge,
                                  LogOfMore(f, u)));
  return f.Result(absl::Substitute("select($0 < 0.0, -$1, $1)", f.x(), y));
}

// Two square roots, because the product of d and d + 2 is positive again below -1.
absl::Status DefineAcosh(const NodeView& node, StageWriter& writer) {
  Function f(node, writer);
  const std::string d = f.Let("d", absl::Substitute("min($0, $1) - 1.0", f.x(), kLarge));
  const std::string u = f.Let("u", absl::Substitute("$0 + sqrt($0) * sqrt($0 + 2.0)", d));
  return f.Result(absl::Substitute("select($1 < $0, log($0) + 0.693147180559945309, $2)", f.x(),
                                   kLarge, LogOfMore(f, u)));
}

absl::Status DefineAtanh(const NodeView& node, StageWriter& writer) {
  Function f(node, writer);
  const std::string a = f.Let("a", absl::StrCat("abs(", f.x(), ")"));
  const std::string u = f.Let("u", absl::Substitute("2.0 * $0 / (1.0 - $0)", a));
  const std::string y =
      f.Let("y", absl::Substitute("select($0 < 1.0, 0.5 * ($1), select($0 == 1.0, inf, "
                                  "sqrt(1.0 - $0)))",
                                  a, LogOfMore(f, u)));
  return f.Result(absl::Substitute("select($0 < 0.0, -$1, $1)", f.x(), y));
}

// The largest error of some million arguments in f32 was 7 units in the last place.
constexpr absl::string_view kTypes =
    "f16, bf16 and f32; the error is at most 8 units in the last place of f32";
constexpr absl::string_view kPeriodic =
    "f16, bf16 and f32; up to 10,000, the error is at most 8 units in the last place of f32, and "
    "grows beyond";

}  // namespace

absl::Span<const OperatorDef> UnaryOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Abs", 1, 1, SameNumberType, Map<kAbs>},
      {"Acos", 1, 1, InferFunction, DefineAcos, kTypes},
      {"Acosh", 1, 1, InferFunction, DefineAcosh, kTypes},
      {"Asin", 1, 1, InferFunction, DefineAsin, kTypes},
      {"Asinh", 1, 1, InferFunction, DefineAsinh, kTypes},
      {"Atan", 1, 1, InferFunction, DefineAtan, kTypes},
      {"Atanh", 1, 1, InferFunction, DefineAtanh, kTypes},
      {"Cast", 1, 1, InferCast, DefineCast, "8-bit floats with saturation"},
      {"CastLike", 2, 2, InferCastLike, DefineCast, "8-bit floats with saturation"},
      {"Ceil", 1, 1, SameFloatType, Map<kCeil>},
      {"Cos", 1, 1, InferFunction, DefineCos, kPeriodic},
      {"Cosh", 1, 1, InferFunction, DefineCosh, kTypes},
      {"Erf", 1, 1, SameFloatType, Map<kErf>, "float types"},
      {"Exp", 1, 1, SameFloatType, Map<kExp>},
      {"Floor", 1, 1, SameFloatType, Map<kFloor>},
      {"IsInf", 1, 1, InferIsNaN, DefineIsInf},
      {"IsNaN", 1, 1, InferIsNaN, Map<kIsNaN>},
      {"Log", 1, 1, SameFloatType, Map<kLog>},
      {"Neg", 1, 1, SameNumberType, Map<kNeg>},
      {"Not", 1, 1, InferNot, Map<kNot>},
      {"Reciprocal", 1, 1, SameFloatType, Map<kReciprocal>},
      {"Relu", 1, 1, SameNumberType, Map<kRelu>},
      {"Round", 1, 1, SameFloatType, Map<kRound>},
      {"Sign", 1, 1, SameNumberType, DefineSign},
      {"Sin", 1, 1, InferFunction, DefineSin, kPeriodic},
      {"Sinh", 1, 1, InferFunction, DefineSinh, kTypes},
      {"Sqrt", 1, 1, SameFloatType, Map<kSqrt>},
      {"Tan", 1, 1, InferFunction, DefineTan, kPeriodic},
  };
  return kOperators;
}

}  // namespace hone::graph

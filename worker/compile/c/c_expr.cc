#include "worker/compile/c/c_expr.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "worker/compile/c/c_memory.h"

namespace hone::codegen {
namespace {

using ir::DType;
using ir::Expr;
using ir::ExprId;
using ir::Op;

constexpr int64_t kMaxOperations = 1 << 20;  // of all statements

bool IsShort(DType dtype) { return ir::AccumulatorOf(dtype) != dtype; }

// Prints a number with the fewest digits that are read back as the same number.
std::string Shortest(double value, bool is_float) {
  for (int digits = 1; digits < 17; ++digits) {
    std::string text = absl::StrFormat("%.*g", digits, value);
    const double read = std::strtod(text.c_str(), nullptr);
    if (is_float ? static_cast<float>(read) == static_cast<float>(value) : read == value) {
      return text;
    }
  }
  return absl::StrFormat("%.17g", value);
}

}  // namespace

WholeLimits::Limits WholeLimits::Of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return {0, 1};
    case DType::kI8:
      return {-128, 127};
    case DType::kU8:
      return {0, 255};
    case DType::kI32:
      return {-0x1p31, 0x1p31 - 1};
    default:
      return {-0x1p63, 0x1p63};
  }
}

bool WholeLimits::Fits(Limits limits, DType dtype) {
  if (dtype == DType::kI64) return limits.min > -0x1p62 && limits.max < 0x1p62;
  const Limits held = Of(dtype);
  return limits.min >= held.min && limits.max <= held.max;
}

WholeLimits::Limits WholeLimits::Of(ExprId id) {
  if (const auto known = limits_.find(id); known != limits_.end()) return known->second;
  const Limits limits = New(p_.pool[id]);
  return limits_.emplace(id, limits).first->second;
}

WholeLimits::Limits WholeLimits::New(const Expr& expr) {
  const Limits all = Of(expr.dtype);
  if (ir::IsFloat(expr.dtype)) return {-0x1p1000, 0x1p1000};
  Limits a = all, b = all;
  switch (expr.op) {
    case Op::kConst: {
      const auto value = static_cast<double>(expr.value.whole());
      return {value, value};
    }
    case Op::kIndex: {
      const ir::Range range = p_.atoms.RangeOf(p_.pool.IndicesOf(expr)[0]);
      return {static_cast<double>(range.min), static_cast<double>(range.max)};
    }
    case Op::kCast:
      a = Of(expr.a);
      // An operand that may overflow wraps before it is converted.
      if (const DType from = p_.pool[expr.a].dtype; !ir::IsFloat(from) && !Fits(a, from)) {
        a = Of(from);
      }
      return Fits(a, expr.dtype) ? a : all;
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
      b = Of(expr.b);
      [[fallthrough]];
    case Op::kNeg:
      a = Of(expr.a);
      break;
    default:
      return all;
  }
  // An operand that may overflow wraps, so it can have any value of its dtype.
  if (!Fits(a, expr.dtype)) a = all;
  if (!Fits(b, expr.dtype)) b = all;
  if (expr.op == Op::kAdd) return {a.min + b.min, a.max + b.max};
  if (expr.op == Op::kSub) return {a.min - b.max, a.max - b.min};
  if (expr.op == Op::kNeg) return {-a.max, -a.min};
  const double products[] = {a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max};
  return {*std::min_element(products, products + 4), *std::max_element(products, products + 4)};
}

absl::string_view CExprPrinter::ValueType(DType dtype) const {
  if (dtype == DType::kBool) return "bool";
  return dialect_.TypeName(IsShort(dtype) ? DType::kF32 : dtype);
}

CText CExprPrinter::Print(ExprId id) {
  if (const auto known = values_.find(id); known != values_.end()) return {known->second};
  if (++operations_ > kMaxOperations) {
    status_.Update(absl::InvalidArgumentError(
        absl::StrCat("the code exceeds ", kMaxOperations, " operations; unroll or inline less")));
    return {"0"};
  }
  return New(p_.pool[id], id);
}

CText CExprPrinter::New(const Expr& expr, ExprId id) {
  if (expr.dtype == DType::kF64) prelude_.UseF64();
  switch (expr.op) {
    case Op::kConst:
      return Constant(expr);
    case Op::kIndex: {
      const ir::Index& index = p_.pool.IndicesOf(expr)[0];
      const CText text = index_.Print(index);
      return index_.IsInt(index) ? As("long", text) : text;
    }
    case Op::kLoad:
      return Load(expr);
    case Op::kSelect:
      return {absl::StrCat(Print(expr.a).Within(CBinding::kOr), " ? ",
                           Print(expr.b).Within(CBinding::kOr), " : ",
                           Print(expr.c).Within(CBinding::kConditional)),
              CBinding::kConditional};
    case Op::kAnd:
      if (expr.dtype != DType::kBool) {
        return Infix(expr, "&", CBinding::kPrimary, CBinding::kPrimary);
      }
      return Infix(expr, "&&", CBinding::kComparison, CBinding::kComparison);
    case Op::kOr:
      return Infix(expr, "||", CBinding::kComparison, CBinding::kComparison);
    case Op::kNot:
      return {absl::StrCat("!", Print(expr.a).Within(CBinding::kPrimary)), CBinding::kComparison};
    case Op::kLess:
    case Op::kLessEqual:
    case Op::kEqual:
      return Comparison(expr);
    case Op::kCast:
      return Cast(expr);
    case Op::kWhere:
      status_.Update(absl::UnimplementedError("a guarded value was not lowered"));
      return {"0"};
    default:
      return ir::IsFloat(expr.dtype) ? Arithmetic(expr) : WholeArithmetic(expr, id);
  }
}

CText CExprPrinter::Constant(const Expr& expr) {
  if (expr.dtype == DType::kBool) return {expr.value.IsTrue() ? "1" : "0"};
  if (!ir::IsFloat(expr.dtype)) {
    const int64_t whole = expr.value.whole();
    const char* const suffix = expr.dtype == DType::kI64 ? "L" : "";
    // C has no literal for the least integer.
    const bool least =
        whole == static_cast<int64_t>(WholeLimits::Of(expr.dtype).min) && whole < -128;
    if (least) return {absl::StrCat("(", whole + 1, suffix, " - 1)")};
    return {absl::StrCat(whole, suffix), whole < 0 ? CBinding::kUnary : CBinding::kPrimary};
  }
  const double value = expr.value.real();
  const bool is_f64 = expr.dtype == DType::kF64;
  const bool negative = std::signbit(value) && !std::isnan(value);
  std::string text = std::isnan(value)   ? prelude_.Use("NAN")
                     : std::isinf(value) ? prelude_.Use("INFINITY")
                                         : Shortest(std::abs(value), !is_f64);
  if (std::isfinite(value)) {
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    if (!is_f64) text += "f";
  }
  return {absl::StrCat(negative ? "-" : "", text),
          negative ? CBinding::kUnary : CBinding::kPrimary};
}

std::string CExprPrinter::Element(ir::BufferId buffer, const ir::Index& offset, ExprId gathered) {
  used_buffers_.insert(buffer);
  if (IsScalar(p_, buffer) && gathered == ir::kNoExpr) return names_[buffer];
  CText text = index_.Print(offset, StridesOf(p_, buffer));
  if (gathered != ir::kNoExpr) {
    const std::string at = Print(gathered).Within(CBinding::kSum);
    text.text = text.text == "0" ? at : absl::StrCat(text.text, " + ", at);
  }
  return absl::StrCat(names_[buffer], "[", text.text, "]");
}

CText CExprPrinter::Load(const Expr& expr) {
  const DType dtype = p_.buffers[expr.buffer].dtype;
  const std::string element =
      Element(expr.buffer, p_.pool.IndicesOf(expr)[0], expr.gathered < 0 ? ir::kNoExpr : expr.a);
  if (dtype == DType::kBool) return {absl::StrCat(element, " != 0"), CBinding::kComparison};
  if (!IsShort(dtype)) return {element};
  const std::string function = prelude_.Use(absl::StrCat(ir::DTypeName(dtype), "_to_float"));
  return {absl::StrCat(function, "(", element, ")")};
}

std::string CExprPrinter::Stored(ExprId value, DType dtype) {
  if (!IsShort(dtype)) return Print(value).text;
  // A cast to this dtype is left out, because the store rounds in the same way.
  const Expr& expr = p_.pool[value];
  const bool is_rounding = expr.op == Op::kCast && expr.dtype == dtype &&
                           p_.pool[expr.a].dtype == DType::kF32 && !HasName(value);
  const CText text = Print(is_rounding ? expr.a : value);
  const std::string function = prelude_.Use(absl::StrCat(ir::DTypeName(dtype), "_from_float"));
  return absl::StrCat(function, "(", text.text, ")");
}

CText CExprPrinter::Infix(const Expr& expr, absl::string_view symbol, CBinding left,
                          CBinding right) {
  const bool same = p_.pool[expr.a].op == expr.op;  // a chain: C evaluates it from the left
  const CBinding binding = symbol == "&&"                   ? CBinding::kAnd
                           : symbol == "||"                 ? CBinding::kOr
                           : symbol == "*" || symbol == "/" ? CBinding::kProduct
                           : symbol == "+" || symbol == "-" ? CBinding::kSum
                                                            : CBinding::kComparison;
  if (same && (expr.op == Op::kAnd || expr.op == Op::kOr)) left = binding;
  // In two statements, because the order of evaluation decides the order of the prelude.
  const std::string a = Print(expr.a).Within(left);
  const std::string b = Print(expr.b).Within(right);
  return {absl::StrCat(a, " ", symbol, " ", b), binding};
}

CText CExprPrinter::Comparison(const Expr& expr) {
  const absl::string_view symbol = expr.op == Op::kLess        ? "<"
                                   : expr.op == Op::kLessEqual ? "<="
                                                               : "==";
  return Infix(expr, symbol, CBinding::kSum, CBinding::kSum);
}

CText CExprPrinter::Call(const std::string& function, const Expr& expr) {
  std::string text = absl::StrCat(function, "(", Print(expr.a).text);
  if (expr.b != ir::kNoExpr) absl::StrAppend(&text, ", ", Print(expr.b).text);
  return {text + ")"};
}

CText CExprPrinter::Function(const Expr& expr) {
  static constexpr std::pair<Op, absl::string_view> kFunctions[] = {
      {Op::kAbs, "fabs"},    {Op::kExp, "exp"},   {Op::kLog, "log"},     {Op::kSqrt, "sqrt"},
      {Op::kRsqrt, "rsqrt"}, {Op::kTanh, "tanh"}, {Op::kErf, "erf"},     {Op::kRound, "rint"},
      {Op::kFloor, "floor"}, {Op::kCeil, "ceil"}, {Op::kTrunc, "trunc"}, {Op::kPow, "pow"}};
  for (const auto& [op, name] : kFunctions) {
    if (op == expr.op) {
      const DType dtype = IsShort(expr.dtype) ? DType::kF32 : expr.dtype;
      return Call(dialect_.MathFunction(name, dtype), expr);
    }
  }
  status_.Update(absl::UnimplementedError(
      absl::StrCat("operation ", ir::InfoOf(expr.op).name, " has no C code")));
  return {"0"};
}

CText CExprPrinter::Arithmetic(const Expr& expr) {
  const absl::string_view type = ValueType(expr.dtype);
  switch (expr.op) {
    case Op::kAdd:
      return Infix(expr, "+", CBinding::kSum, CBinding::kProduct);
    case Op::kSub:
      return Infix(expr, "-", CBinding::kSum, CBinding::kProduct);
    case Op::kMul:
      return Infix(expr, "*", CBinding::kProduct, CBinding::kUnary);
    case Op::kDiv:
      return Infix(expr, "/", CBinding::kProduct, CBinding::kUnary);
    case Op::kMin:
      return Call(prelude_.Use("min", type), expr);
    case Op::kMax:
      return Call(prelude_.Use("max", type), expr);
    case Op::kNeg:
      return {absl::StrCat("-", Print(expr.a).Within(CBinding::kPrimary)), CBinding::kUnary};
    case Op::kSigmoid:
      return Call(prelude_.Use("sigmoid", type), expr);
    case Op::kNormalCdf:
      return Call(prelude_.Use("normal_cdf", type), expr);
    default:
      return Function(expr);
  }
}

// 8-bit integers are computed in int, which holds their sums and products, and wrap in a cast.
CText CExprPrinter::WholeArithmetic(const Expr& expr, ExprId id) {
  if (expr.dtype == DType::kBool && expr.op != Op::kMin && expr.op != Op::kMax) {
    const CText text = Infix(expr, expr.op == Op::kMul ? "&&" : "||", CBinding::kComparison,
                             CBinding::kComparison);
    if (expr.op == Op::kAdd || expr.op == Op::kMul) return text;
    status_.Update(absl::UnimplementedError(
        absl::StrCat("operation ", ir::InfoOf(expr.op).name, " of bool has no C code")));
    return {"0"};
  }
  const bool is_char = expr.dtype == DType::kI8 || expr.dtype == DType::kU8;
  const absl::string_view type = expr.dtype == DType::kI64 ? "long" : "int";
  const bool divides_safely = expr.op == Op::kDiv && p_.pool[expr.b].op == Op::kConst &&
                              p_.pool[expr.b].value.whole() != 0 &&
                              p_.pool[expr.b].value.whole() != -1;
  // For 8-bit integers, |-128|, -128 / -1 and bits that are shifted out do not fit.
  const bool exceeds =
      expr.op == Op::kShiftLeft || expr.op == Op::kAbs || (expr.op == Op::kDiv && !divides_safely);
  const bool fits = !exceeds && WholeLimits::Fits(limits_.Of(id), expr.dtype);
  const bool plain = fits || is_char;  // int or long does not overflow
  CText text;
  switch (expr.op) {
    case Op::kAdd:
      text = plain ? Infix(expr, "+", CBinding::kSum, CBinding::kProduct)
                   : Call(prelude_.Use("add", type), expr);
      break;
    case Op::kSub:
      text = plain ? Infix(expr, "-", CBinding::kSum, CBinding::kProduct)
                   : Call(prelude_.Use("sub", type), expr);
      break;
    case Op::kMul:
      text = plain ? Infix(expr, "*", CBinding::kProduct, CBinding::kUnary)
                   : Call(prelude_.Use("mul", type), expr);
      break;
    case Op::kNeg:
      text = plain ? CText{absl::StrCat("-", Print(expr.a).Within(CBinding::kPrimary)),
                           CBinding::kUnary}
                   : Call(prelude_.Use("neg", type), expr);
      break;
    case Op::kDiv:
      text = divides_safely ? Infix(expr, "/", CBinding::kProduct, CBinding::kUnary)
                            : Call(prelude_.Use("div", type), expr);
      break;
    case Op::kMin:
      return Call(prelude_.Use("min", type), expr);
    case Op::kMax:
      return Call(prelude_.Use("max", type), expr);
    case Op::kAbs:
      if (limits_.Of(expr.a).min >= 0) return Print(expr.a);
      text = Call(prelude_.Use("abs", type), expr);
      break;
    case Op::kShiftLeft:
      text = Call(prelude_.Use("shift_left", type), expr);
      break;
    case Op::kShiftRight:
      return Call(prelude_.Use("shift_right", type), expr);
    case Op::kRound:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kTrunc:
      return Print(expr.a);
    default:
      status_.Update(absl::UnimplementedError(
          absl::StrCat("operation ", ir::InfoOf(expr.op).name, " of whole numbers has no C code")));
      return {"0"};
  }
  return is_char && !fits ? As(dialect_.TypeName(expr.dtype), text) : text;
}

CText CExprPrinter::Cast(const Expr& expr) {
  const Expr& operand = p_.pool[expr.a];
  const DType from = operand.dtype, to = expr.dtype;
  const auto call = [](const std::string& function, const CText& argument) {
    return CText{absl::StrCat(function, "(", argument.text, ")")};
  };
  // An index is an int if possible, unless long arithmetic follows.
  const bool is_index = operand.op == Op::kIndex && !HasName(expr.a);
  CText text = is_index ? index_.Print(p_.pool.IndicesOf(operand)[0]) : Print(expr.a);
  if (from == DType::kF64) prelude_.UseF64();
  if (to == DType::kBool) {
    if (from == DType::kBool) return text;
    return {absl::StrCat(text.Within(CBinding::kSum), " != 0"), CBinding::kComparison};
  }
  if (IsShort(to)) {
    if (from == to && (operand.op == Op::kLoad || operand.op == Op::kConst)) return text;
    if (from == DType::kF64) text = call(prelude_.Use("odd_from_double"), text);
    if (!ir::IsFloat(from)) {
      // f32 holds all integers that f16 and the 8-bit floats can tell apart.
      const bool is_wide = from == DType::kI32 || from == DType::kI64;
      const bool rounds_twice = is_wide && to == DType::kBF16;
      text = rounds_twice ? call(prelude_.Use("odd_from_long"), text)
                          : As(dialect_.TypeName(DType::kF32), text);
      const bool exact = !is_wide && (to == DType::kF16 || to == DType::kBF16);
      if (exact) return text;
    }
    return call(prelude_.Use(absl::StrCat("round_", ir::DTypeName(to))), text);
  }
  if (ir::IsFloat(to)) {
    const bool same = ValueType(from) == ValueType(to);
    return same ? text : As(ValueType(to), text);
  }
  if (ir::IsFloat(from)) {
    text = call(prelude_.Use(to == DType::kI64 ? "long_from" : "int_from", ValueType(from)), text);
    return to == DType::kI8 || to == DType::kU8 ? As(dialect_.TypeName(to), text) : text;
  }
  if (is_index && to == DType::kI32 && index_.IsInt(p_.pool.IndicesOf(operand)[0])) return text;
  return As(dialect_.TypeName(to), text);
}

}  // namespace hone::codegen

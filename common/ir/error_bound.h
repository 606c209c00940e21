#ifndef HONE_COMMON_IR_ERROR_BOUND_H_
#define HONE_COMMON_IR_ERROR_BOUND_H_

#include <cmath>

#include "common/ir/dtype.h"
#include "common/ir/expr.h"
#include "common/ir/scalar.h"

// Propagation of errors from operands to results. Every value has two bounds:
//   magnitude  the value with every load, product and sum replaced by absolute values. Errors of
//              arithmetic are bounded by a constant times the unit roundoff times the magnitude.
//   rounding   an absolute bound on how far discontinuities on the way can drive two computations
//              apart; 0 without them. These are conversions (intermediate tensors of f16 and bf16,
//              casts) and comparisons of computed floats. Two computations differ there only where
//              their errors of arithmetic cross a boundary between two results.
// The formulas are first-order forward error analysis (Higham, Accuracy and Stability of Numerical
// Algorithms, 2002, chapters 1 and 3). They are templates because the interpreter evaluates them
// and the reference workload builds expressions from them. `Number` is double or a type with + - *
// / and the functions below.
namespace hone::ir {

inline double Absolute(double a) { return a < 0 ? -a : a; }
// The absolute value; 0 of an infinity, which has no error.
inline double SizeOf(double a) { return std::isinf(a) ? 0 : Absolute(a); }
inline double ConstantLike(double, double value) { return value; }
inline double Larger(double a, double b) { return a < b ? b : a; }
inline double Smaller(double a, double b) { return b < a ? b : a; }
inline double Converted(DType dtype, double a) { return CastTo(dtype, Scalar(a)).real(); }
inline double IfZero(double a, double then, double otherwise) { return a == 0 ? then : otherwise; }
inline double IfLess(double a, double b, double then, double otherwise) {
  return a < b ? then : otherwise;
}
double Exponential(double a);
double SquareRoot(double a);

// Unit roundoff of a float type: half the distance from 1 to the next number. 0 for other types.
double UnitRoundoff(DType dtype);

// The range of an integer type.
double LeastInteger(DType dtype);
double MostInteger(DType dtype);

// Whether a conversion loses digits: to a shorter float, or from a float to an integer.
bool LosesDigits(DType from, DType to);
// Whether an operation is <, <= or ==.
bool IsComparison(Op op);
// Whether a float is converted to a type that holds all its values.
bool IsWidening(DType from, DType to);

// The distance that wrapping adds to the rounding of an integer with a computed value.
template <typename Number>
Number WrappedRounding(DType dtype, Number value, Number rounding) {
  const double least = LeastInteger(dtype), most = MostInteger(dtype);
  const Number beyond = Larger(value + rounding - most, rounding - value + least);
  return IfLess(ConstantLike(value, 0), beyond, ConstantLike(value, most - least), rounding);
}

// The rounding of a comparison, 1 where the errors of its operands can change its result. `gap` is
// the distance of the operands.
template <typename Number>
Number ComparisonRounding(Number gap, Number error) {
  return IfLess(gap, error, ConstantLike(gap, 1), ConstantLike(gap, 0));
}

// How far apart conversion to `dtype` can move `value` and a number within `error` of it. It is 0
// unless a boundary between two results lies within the error. NaN if the error is not finite.
template <typename Number>
Number ConversionRounding(DType from, DType dtype, Number value, Number error) {
  const Number zero = ConstantLike(error, 0);
  if (dtype == DType::kBool) return ComparisonRounding(Absolute(value), error);
  if (!IsFloat(dtype) && !IsFloat(from)) {
    return IfZero(error, zero, WrappedRounding(dtype, Converted(dtype, value), error));
  }
  const DType rounded = IsFloat(dtype) ? dtype : DType::kI64;
  const Number at = Converted(rounded, value);
  const Number above = Absolute(Converted(rounded, value + error) - at);
  const Number below = Absolute(at - Converted(rounded, value - error));
  const Number rounding = IfZero(error, zero, Larger(above, below) + 0 * error);
  if (IsFloat(dtype)) return rounding;
  return WrappedRounding(dtype, Converted(dtype, value), rounding);
}

// The magnitude of a constant. 0 for an infinite one, such as that of a masked element: it has no
// error.
double MagnitudeOfConstant(double value);

// A term of a maximum or minimum is a possible extreme if its distance from the result is at most
// this fraction of its magnitude. The errors of other terms, such as masked ones, do not reach the
// result.
inline constexpr double kContending = 0x1p-6;

inline constexpr double kMostExponent = 700;  // exp() of it is finite
inline constexpr double kTinyRoot = 0x1p-500;
// 1/√u of f64: the error of a root of 0 as a multiple of the root of the operand's magnitude.
inline constexpr double kErrorOfRoot = 0x1p26;

// Magnitude of a unary or binary operation with result `value`. For products and quotients it is
// the product of the operands' magnitudes.
template <typename Number>
Number MagnitudeOf(Op op, Number value, Number a, Number b_value, Number b) {
  switch (op) {
    case Op::kAdd:
    case Op::kSub:
      return a + b;
    case Op::kMul:
      return a * b;
    case Op::kDiv: {
      // Treated as a product with 1/b, whose relative error is that of b.
      const Number divisor = Absolute(b_value);
      const Number safe = IfZero(divisor, 1 + 0 * divisor, divisor);
      return IfZero(divisor, a, a / safe * (b / safe));
    }
    case Op::kMin:
    case Op::kMax:
      return Larger(a, b);
    case Op::kNeg:
    case Op::kAbs:
    case Op::kCast:
      return a;
    case Op::kExp:
      // The relative error is the error of a. A result of 0 has no error, however large a is.
      return IfZero(value, value, Absolute(value) * (1 + a));
    case Op::kLog:
      // The relative error of the operand is the absolute error of the logarithm.
      return Larger(
          SizeOf(value),
          SizeOf(a) * Exponential(Smaller(-1.0 * value, ConstantLike(value, kMostExponent))));
    case Op::kSqrt: {
      // The slope is infinite at 0, but an error e of the operand is at most √e in the root.
      const Number by_slope =
          0.5 * SizeOf(a) / IfZero(value, ConstantLike(value, kTinyRoot), value);
      return Larger(SizeOf(value), Smaller(by_slope, kErrorOfRoot * SquareRoot(SizeOf(a))));
    }
    case Op::kRsqrt: {
      const Number size = SizeOf(value);
      return Larger(size, 0.5 * a * size * size * size);
    }
    default:
      return Larger(SizeOf(value), a);
  }
}

// A tighter bound for products and quotients: relative errors of the operands add up. Products of
// two errors count as 1/256, more than they can be. An operand's size is its absolute value; it
// exceeds its magnitude only where it is infinite and has no error.
template <typename Number>
Number MagnitudeOfProduct(Number a_value, Number a, Number b_value, Number b) {
  constexpr double kOfErrors = 0x1p-8;
  const Number a_size = Smaller(Absolute(a_value), a), b_size = Smaller(Absolute(b_value), b);
  return a * b_size + a_size * b + kOfErrors * ((a - a_size) * (b - b_size));
}
template <typename Number>
Number MagnitudeOfQuotient(Number value, Number a, Number b_value, Number b) {
  const Number divisor = Absolute(b_value);
  const Number one = ConstantLike(divisor, 1);
  const Number safe = IfZero(divisor, one, divisor);
  return IfZero(divisor, a, MagnitudeOfProduct(value, a / safe, one, b / safe));
}

// The rounding of a unary or binary operation on floats other than a comparison or cast, from the
// values and roundings of its operands.
template <typename Number>
Number RoundingOfFloat(Op op, Number value, Number a_value, Number a, Number b_value, Number b) {
  switch (op) {
    case Op::kAdd:
    case Op::kSub:
      return a + b;
    case Op::kMul:
      return Absolute(a_value) * b + Absolute(b_value) * a + a * b;
    case Op::kDiv: {
      const Number divisor = Absolute(b_value);
      const Number least = Larger(divisor - b, divisor * 0.5);
      const Number safe = IfZero(least, 1 + 0 * least, least);
      return (a + Absolute(value) * b) / safe;
    }
    case Op::kMin:
    case Op::kMax:
    case Op::kAnd:
    case Op::kOr:
      return Larger(a, b);
    case Op::kNeg:
    case Op::kAbs:
    case Op::kNot:
      return a;
    case Op::kExp:
      return IfZero(value, value, Absolute(value) * (Exponential(a) - 1));
    case Op::kLog: {
      const Number least = Larger(Absolute(a_value) - a, Absolute(a_value) * 0.5);
      return a / IfZero(least, 1 + 0 * least, least);
    }
    case Op::kSqrt: {
      const Number root = SquareRoot(Larger(Absolute(a_value), a));
      return a / IfZero(root, 1 + 0 * root, root);
    }
    case Op::kRsqrt:
      return a * Absolute(value) * value * value;
    default:
      // The slopes of the remaining operations are at most 1.13.
      return a * 1.13;
  }
}

// The same for any dtype. The quotients of integers are truncated.
template <typename Number>
Number RoundingOf(Op op, DType dtype, Number value, Number a_value, Number a, Number b_value,
                  Number b) {
  const Number rounding = RoundingOfFloat(op, value, a_value, a, b_value, b);
  if (IsFloat(dtype) || dtype == DType::kBool) return rounding;
  const Number truncated = op == Op::kDiv ? IfZero(rounding, rounding, 1.0 + rounding) : rounding;
  return IfZero(rounding, rounding, WrappedRounding(dtype, value, truncated));
}

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_ERROR_BOUND_H_

#ifndef HONE_COMMON_IR_ERROR_BOUND_H_
#define HONE_COMMON_IR_ERROR_BOUND_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/ir/dtype.h"
#include "common/ir/expr.h"
#include "common/ir/workload.h"

namespace hone::ir {

// Propagation of errors from operands to results. Every value has two bounds:
//   magnitude  the value with every load, product and sum replaced by absolute values. Errors of
//              arithmetic are at most `unit` times the magnitude, where `unit` is
//              Accuracy::relative_error(). First-order forward error analysis (Higham, Accuracy and
//              Stability of Numerical Algorithms, 2002, chapters 1 and 3); infinite where the
//              result is not bounded, such as at a zero of a divisor.
//   rounding   an absolute bound on how far jumps on the way can drive two computations apart; 0
//              without them. Jumps are conversions (intermediate tensors of short floats, casts),
//              roundings to whole numbers and comparisons of computed floats. Two computations
//              differ there only where their errors of arithmetic reach a boundary between two
//              results.
// The formulas are templates because the interpreter evaluates them and the reference workload
// builds expressions from them. `Number` is double or a type with + - * / and the functions below.

inline bool IsZero(double a) { return a == 0; }
inline double Absolute(double a) { return a < 0 ? -a : a; }
// The absolute value; 0 for an infinity or NaN, which has no error.
inline double SizeOf(double a) { return std::isfinite(a) ? Absolute(a) : 0; }
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
double Logarithm(double a);
double Power(double a, double b);
// REQUIRES RoundsToWhole(op).
double Whole(Op op, double a);

// Unit roundoff of a float type: half the distance from 1 to the next number. 0 for other types.
double UnitRoundoff(DType dtype);

// The range of an integer type.
double LeastInteger(DType dtype);
double MostInteger(DType dtype);

// Whether a float type is converted to one that holds all its values.
bool IsWidening(DType from, DType to);
// Whether a conversion loses digits: to a float type that does not hold all values, or from a float
// to an integer.
bool LosesDigits(DType from, DType to);
// Whether an operation is <, <= or ==.
bool IsComparison(Op op);
// Whether an operation rounds a float to a whole number.
bool RoundsToWhole(Op op);

template <typename Number>
Number Infinite(Number like) {
  return ConstantLike(like, std::numeric_limits<double>::infinity());
}

// The part of an operand's error that can reach the result of a minimum or maximum. `gap` is the
// distance of the operand from the result; negative if the result was rounded.
template <typename Number>
Number Excess(Number error, Number gap) {
  const Number zero = ConstantLike(error, 0);
  return Larger(zero, error - Larger(zero, gap));
}

// The rounding of an integer whose computed value may wrap. `above` and `below` are the distances
// by which it may be larger and smaller.
template <typename Number>
Number WrappedRounding(DType dtype, Number value, Number above, Number below) {
  const double least = LeastInteger(dtype), most = MostInteger(dtype);
  const Number range = ConstantLike(value, most - least);
  return IfLess(ConstantLike(value, most), value + above, range,
                IfLess(value - below, ConstantLike(value, least), range, Larger(above, below)));
}

// The rounding of a comparison, 1 where the errors of its operands can change its result. `gap` is
// the distance between the operands.
template <typename Number>
Number ComparisonRounding(Number gap, Number error) {
  const Number zero = ConstantLike(gap, 0);
  return IfZero(error, zero, IfLess(error, gap, zero, ConstantLike(gap, 1)));
}

// How far apart conversion to `dtype` can move `value` and a number within `error` of it. It is 0
// unless a boundary between two results lies within the error. NaN if the error is not finite.
template <typename Number>
Number ConversionRounding(DType from, DType dtype, Number value, Number error) {
  const Number zero = ConstantLike(error, 0);
  if (dtype == DType::kBool) return ComparisonRounding(Absolute(value), error);
  if (!IsFloat(dtype) && !IsFloat(from)) {
    const Number wrapped = Converted(dtype, value);
    return IfZero(error, zero, WrappedRounding(dtype, wrapped, error, error));
  }
  const DType rounded = IsFloat(dtype) ? dtype : DType::kI64;
  const Number at = Converted(rounded, value);
  const Number above = Absolute(Converted(rounded, value + error) - at);
  const Number below = Absolute(at - Converted(rounded, value - error));
  if (IsFloat(dtype)) return IfZero(error, zero, Larger(above, below) + 0 * error);
  const Number wrapped = Converted(dtype, value);
  return IfZero(error, zero, WrappedRounding(dtype, wrapped, above, below) + 0 * error);
}

// How far apart rounding to a whole number can move `value` and a number within `error` of it. NaN
// if the error is not finite.
template <typename Number>
Number WholeRounding(Op op, Number value, Number error) {
  const Number zero = ConstantLike(error, 0), at = Whole(op, value);
  const Number above = Absolute(Whole(op, value + error) - at);
  const Number below = Absolute(at - Whole(op, value - error));
  return IfZero(error, zero, Larger(above, below) + 0 * error);
}

// The magnitude of a constant. 0 for an infinite constant, such as the value of a masked element,
// because it has no error.
double MagnitudeOfConstant(double value);

// A term of a maximum or minimum is a possible extreme if its distance from the result is at most
// this fraction of its magnitude. The errors of other terms, such as masked ones, do not reach the
// result.
inline constexpr double kContending = 0x1p-6;

// The magnitude of a term of a maximum or minimum, or 0 if it is not a possible extreme. `gap` is
// its distance from the result.
template <typename Number>
Number ContendingMagnitude(Number magnitude, Number gap) {
  return IfLess(kContending * magnitude, gap, ConstantLike(gap, 0), magnitude);
}

// Values and bounds of the operands of a unary or binary operation; `b` is unused by unary ones.
template <typename Number>
struct Operands {
  Number a_value, a, b_value, b;
  // A positive lower bound on the divisor or on the operand of a root or logarithm, which holds
  // whatever the errors are (Accuracy::LeastOperand()); 0: none is known.
  double least = 0;
};

// The steepest slope of a bounded function (tanh, erf, sigmoid, normal_cdf) where the absolute
// value of its operand is at least `size`, which may be negative.
template <typename Number>
Number SteepestSlope(Op op, Number size) {
  const Number at = Larger(ConstantLike(size, 0), size);
  switch (op) {
    case Op::kTanh:  // 1 / cosh²
      return Smaller(ConstantLike(size, 1), 4 * Exponential(-2 * at));
    case Op::kSigmoid:
      return Smaller(ConstantLike(size, 0.25), Exponential(-1 * at));
    case Op::kNormalCdf:
      return 0.4 * Exponential(-0.5 * (at * at));
    case Op::kErf:
      return 1.13 * Exponential(-1 * (at * at));
    default:
      return ConstantLike(size, 1);
  }
}

// The bound for a quotient, logarithm or root if the error bounds alone do not exclude a divisor or
// operand of 0. Infinite unless of.least excludes it: two computations with operands of at least
// of.least differ by no more than `unit` times this bound.
template <typename Number>
Number BoundByLeast(Op op, double unit, Number value, const Operands<Number>& of) {
  if (!(of.least > 0)) return Infinite(value);
  const Number least = ConstantLike(value, of.least);
  switch (op) {
    case Op::kDiv:
      return (of.a + Absolute(value) * of.b) / least;
    case Op::kRsqrt: {
      const Number bound = Absolute(value) * of.a / least;
      const Number largest = ConstantLike(value, 1 / (unit * std::sqrt(of.least)));
      return IfLess(bound, largest, bound, largest);  // also if the bound is NaN
    }
    default:  // The slopes of a logarithm and, up to here, of a root are at most 1 / least.
      return of.a / Smaller(least, SquareRoot(least));
  }
}

// Bound on the error of a power, as a multiple of `unit`. of.a and of.b bound the errors of base
// and exponent in the same way; 0 means no error. Infinite where the base may be 0 or change its
// sign, unless the exponent is certainly a positive whole number, and where the exponent of a base
// that is not positive may be wrong.
template <typename Number>
Number ErrorOfPower(double unit, Number value, const Operands<Number>& of) {
  const Number zero = ConstantLike(value, 0), one = ConstantLike(value, 1);
  const Number infinite = Infinite(value);
  const Number base = Absolute(of.a_value), exponent = of.b_value, size = Absolute(exponent);
  // The steepest slope within the error of the base.
  const Number lowest = IfLess(Absolute(exponent - 0.5), one - 0.5, -1 * one, one);
  const Number steepest = IfLess(exponent, zero, -1 * one, lowest);
  const Number slope = Power(Absolute(base + steepest * (unit * of.a)), exponent - 1.0);
  const Number is_natural = IfLess(exponent, zero, infinite,
                                   IfZero(exponent - Whole(Op::kRound, exponent), zero, infinite));
  const Number of_base =
      IfZero(of.a, zero, size * (of.a * slope) + IfLess(unit * of.a, base, zero, is_natural));
  if (IsZero(of.b)) return of_base;
  // How far the errors may move the logarithms of base and power.
  const Number moved = of.a / (base - unit * of.a);
  const Number change = size * moved + of.b * (Absolute(Logarithm(base)) + unit * moved);
  const Number of_both = IfLess(unit * of.a, of.a_value,
                                Absolute(value) * (change * Exponential(unit * change)), infinite);
  return IfZero(of.b, of_base, of_both);
}

// The operands of a power, with errors of 0 for those that have none.
template <typename Number>
Operands<Number> WithErrors(bool base, bool exponent, Operands<Number> of) {
  if (!base) of.a = ConstantLike(of.a, 0);
  if (!exponent) of.b = ConstantLike(of.b, 0);
  return of;
}

// Magnitude of a unary or binary operation with result `value`. For products and quotients it is
// the product of the operands' magnitudes. For a power, the magnitude of an operand without errors
// must be 0 (WithErrors).
template <typename Number>
Number MagnitudeOf(Op op, double unit, Number value, const Operands<Number>& of) {
  const Number a = of.a, b = of.b;
  switch (op) {
    case Op::kAdd:
    case Op::kSub:
      return a + b;
    case Op::kMul:
      return a * b;
    case Op::kDiv: {
      // Treated as a product with 1/b, whose relative error is that of b.
      const Number divisor = Absolute(of.b_value);
      return IfLess(2 * unit * b, divisor, a / divisor * (b / divisor),
                    IfZero(b, a, BoundByLeast(op, unit, value, of)));
    }
    case Op::kMin:
    case Op::kMax:
      return Larger(ContendingMagnitude(a, Absolute(value - of.a_value)),
                    ContendingMagnitude(b, Absolute(value - of.b_value)));
    case Op::kNeg:
    case Op::kAbs:
    case Op::kCast:
      return a;
    case Op::kRound:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kTrunc:
      // The operation is exact, but a jump may make its result larger.
      return 1.0 + (SizeOf(value) + unit * a);
    case Op::kPow:
      return SizeOf(value) + ErrorOfPower(unit, value, of);
    case Op::kShiftLeft:
    case Op::kShiftRight:
      return Absolute(value);
    case Op::kExp:
      // The relative error is the error of a. A result of 0 has no error, however large a is.
      return IfZero(value, value, Absolute(value) * (1 + a));
    case Op::kLog:
    case Op::kSqrt:
    case Op::kRsqrt: {
      // The relative error of the operand is the absolute error of the logarithm, and half of it is
      // the relative error of a root.
      const Number size = SizeOf(value), operand = Absolute(of.a_value), relative = a / operand;
      const Number bound = op == Op::kLog ? Larger(size, relative)
                                          : size * Larger(ConstantLike(size, 1), 0.5 * relative);
      return IfLess(2 * unit * a, operand, bound,
                    IfZero(a, size, BoundByLeast(op, unit, value, of)));
    }
    default: {
      // The margin holds for errors of at most this fraction of `a`: for tolerances up to 0.4 %.
      const double margin = unit > 0x1p-8 ? unit : 0x1p-8;
      return Larger(SizeOf(value), a * SteepestSlope(op, Absolute(of.a_value) - margin * a));
    }
  }
}

// A tighter bound for products and quotients of computed values: relative errors of the operands
// add up. The last term is more than the product of the two errors. The size of an operand is its
// absolute value, or its magnitude if that is smaller because the value is infinite.
template <typename Number>
Number MagnitudeOfProduct(const Operands<Number>& of) {
  constexpr double kOfErrors = 0x1p-8;
  const Number a = of.a, b = of.b;
  const Number a_size = Smaller(Absolute(of.a_value), a), b_size = Smaller(Absolute(of.b_value), b);
  return a * b_size + a_size * b + kOfErrors * ((a - a_size) * (b - b_size));
}
template <typename Number>
Number MagnitudeOfQuotient(double unit, Number value, const Operands<Number>& of) {
  const Number divisor = Absolute(of.b_value);
  const Number relative = of.b / divisor;
  return IfLess(
      2 * unit * of.b, divisor,
      MagnitudeOfProduct<Number>({value, of.a / divisor, ConstantLike(divisor, 1), relative}),
      IfZero(of.b, of.a, BoundByLeast(Op::kDiv, unit, value, of)));
}

// The rounding of a unary or binary operation on floats other than a comparison or cast, from the
// values and roundings of its operands. A rounding may be larger than the value.
template <typename Number>
Number RoundingOfFloat(Op op, Number value, const Operands<Number>& of) {
  const Number a = of.a, b = of.b;
  switch (op) {
    case Op::kAdd:
    case Op::kSub:
      return a + b;
    case Op::kMul:
      return Absolute(of.a_value) * b + Absolute(of.b_value) * a + a * b;
    case Op::kDiv: {
      const Number divisor = Absolute(of.b_value);
      return IfLess(b, divisor, (a + Absolute(value) * b) / (divisor - b),
                    IfZero(a + b, a, BoundByLeast(op, 1, value, of)));
    }
    case Op::kMin:
    case Op::kMax:
      return Larger(Excess(a, Absolute(value - of.a_value)),
                    Excess(b, Absolute(value - of.b_value)));
    case Op::kAnd:
    case Op::kOr:
      return Larger(a, b);
    case Op::kNeg:
    case Op::kAbs:
    case Op::kNot:
      return a;
    case Op::kExp:
      return IfZero(value, value, Absolute(value) * (Exponential(a) - 1));
    case Op::kPow:
      return ErrorOfPower(1, value, of);
    case Op::kLog: {
      const Number size = Absolute(of.a_value);
      return IfLess(a, size, a / (size - a), IfZero(a, a, BoundByLeast(op, 1, value, of)));
    }
    case Op::kSqrt: {
      const Number root = SquareRoot(Larger(Absolute(of.a_value), a));
      return a / IfZero(root, ConstantLike(root, 1), root);
    }
    case Op::kRsqrt: {
      const Number size = Absolute(of.a_value);
      return IfLess(a, size, Absolute(value) * a / (size - a),
                    IfZero(a, a, BoundByLeast(op, 1, value, of)));
    }
    default: {
      const Number bound = a * SteepestSlope(op, Absolute(of.a_value) - a);
      const Number range = ConstantLike(a, 2);
      return IfLess(bound, range, bound, range);  // also if the bound is NaN
    }
  }
}

// The rounding of a shift. The rounding of a count may move every bit.
template <typename Number>
Number RoundingOfShift(Op op, Number value, const Operands<Number>& of) {
  const Number size = Absolute(of.a_value);
  if (op == Op::kShiftRight) return IfZero(of.b, of.a, 1.0 + (size + of.a));
  // Counts of 64 and more shift every bit out.
  constexpr double kLog2 = 0.6931471805599453;
  const Number count = Smaller(of.b_value, ConstantLike(value, 64));
  return IfZero(of.b, 1.001 * (of.a * Exponential(kLog2 * count)), Infinite(value));
}

// RoundingOfFloat for any dtype. Integer quotients are truncated; division by 0 gives 0.
template <typename Number>
Number RoundingOf(Op op, DType dtype, Number value, const Operands<Number>& of) {
  if (IsFloat(dtype) || dtype == DType::kBool) return RoundingOfFloat(op, value, of);
  Number rounding = value;
  if (op == Op::kDiv) {
    const Number divisor = Absolute(of.b_value);
    rounding = IfLess(of.b, divisor, 1.0 + (of.a + Absolute(value) * of.b) / (divisor - of.b),
                      Absolute(of.a_value) + of.a + Absolute(value));
  } else if (op == Op::kShiftLeft || op == Op::kShiftRight) {
    rounding = RoundingOfShift(op, value, of);
  } else {
    rounding = RoundingOfFloat(op, value, of);
  }
  return IfZero(of.a + of.b, ConstantLike(value, 0),
                WrappedRounding(dtype, value, rounding, rounding));
}

// The largest error of an operation on floats, as a multiple of the unit roundoff of its result.
using ErrorOfOp = double (*)(Op op);
// Of a device that rounds the exact result of every operation.
inline double RoundsOnce(Op) { return 1; }

// How accurately a correct kernel computes the values of a workload.
class Accuracy {
 public:
  // The workload must outlive this object. `error_of` is that of the device.
  explicit Accuracy(const Workload& workload, ErrorOfOp error_of = RoundsOnce);

  // The number of roundings in the longest chain of operations that an element depends on, at least
  // 1: the terms of reductions and the operations of expressions, each as often as the device's
  // error of it demands. A product of n factors counts n² times the terms of its factors, because
  // relative errors of factors add up.
  double terms() const { return terms_; }
  // Unit roundoff of the coarsest float type used in computation (f32 for short floats); 0 without
  // floats.
  double roundoff() const { return roundoff_; }
  // Bound on the error of a computed float, as a fraction of its magnitude, in addition to the
  // rounding that it inherits (see above). A sum of K terms has at most K roundings. Their
  // expected sum grows with √K in any order (Higham, Accuracy and Stability of Numerical
  // Algorithms, 2002, section 4.2). The factor 8 leaves room for equal terms, whose roundings do
  // not cancel.
  double relative_error() const;
  // Whether no float arithmetic contributes to the value of an expression after its last conversion
  // or rounding to a whole number. Such a value has no error besides that rounding.
  bool IsExact(ExprId id) const;
  // The same for the value that a stage computes for a tensor, before it is stored.
  bool IsComputedExactly(BufferId tensor) const { return exact_[tensor]; }
  // Whether an expression is a product or quotient of two computed values, whose relative errors
  // add up (MagnitudeOfProduct() and MagnitudeOfQuotient()).
  bool AddsErrors(const Expr& expr) const;
  // Whether the value of an expression has no arithmetic error.
  bool IsPlain(ExprId id) const;
  // A positive lower bound, in any correct computation, on the divisor of a quotient or the operand
  // of a logarithm or root; 0 if none is known.
  double LeastOperand(const Expr& expr) const;
  // Whether the rounding of an expression may be positive.
  bool MayVary(ExprId id) const;
  // Whether two correct computations of an expression may differ.
  bool MayDiffer(ExprId id) const { return !IsExact(id) || MayVary(id); }
  // Whether the rounding of an output may be positive: an intermediate tensor is a short float, a
  // cast loses digits, computed floats are compared or rounded to whole numbers, or the output is
  // the index of an extreme of computed floats.
  bool rounds_on_the_way() const { return rounds_on_the_way_; }
  // Whether float inputs that are integers give outputs that are integers: the workload consists of
  // sums, products and comparisons of loads and integer constants.
  bool keeps_integers() const { return keeps_integers_; }

 private:
  void AddStage(const Stage& stage);
  void AddValue(ExprId value);
  bool VariesAsComputed(const Stage& stage, size_t component) const;
  double LeastOfComponent(const Stage& stage, size_t component) const;
  bool AreEqual(ExprId a, ExprId b) const;
  // A lower bound on an expression in any correct computation, apart from the rounding of
  // constants; −infinity if none is known.
  double LeastOf(ExprId id) const;

  const Workload& workload_;
  const ErrorOfOp error_of_;
  double terms_ = 0;
  double roundoff_ = 0;
  bool rounds_on_the_way_ = false;
  bool keeps_integers_ = true;
  std::vector<bool> exact_, varies_;  // by tensor, before it is stored
  std::vector<double> least_;         // by tensor, see LeastOf()
};

// Whether a tensor's dtype has fewer digits than the computation of its values.
bool StoresShort(const Tensor& tensor);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_ERROR_BOUND_H_

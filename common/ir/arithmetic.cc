#include "common/ir/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace hone::ir {
namespace {

// Computes modulo 2^64, then wraps to the dtype.
Scalar IntegerOp(Op op, DType dtype, Scalar a, Scalar b) {
  const auto left = static_cast<uint64_t>(a.whole()), right = static_cast<uint64_t>(b.whole());
  uint64_t result = 0;
  switch (op) {
    case Op::kAdd:
      result = left + right;
      break;
    case Op::kSub:
      result = left - right;
      break;
    case Op::kMul:
      result = left * right;
      break;
    case Op::kDiv:
      if (right == 0) return 0;
      // The smallest i64 divided by −1 overflows.
      result = b.whole() == -1 ? -left : static_cast<uint64_t>(a.whole() / b.whole());
      break;
    case Op::kNeg:
      result = -left;
      break;
    case Op::kAbs:
      result = a.whole() < 0 ? -left : left;
      break;
    // A negative count is a large unsigned one. Bits beyond the width are dropped at the end.
    case Op::kShiftLeft:
      result = right > 63 ? 0 : left << right;
      break;
    case Op::kShiftRight:
      result = static_cast<uint64_t>(a.whole() >> std::min<uint64_t>(right, 63));
      break;
    case Op::kAnd:
      result = left & right;
      break;
    default:
      break;
  }
  return CastTo(dtype, static_cast<int64_t>(result));
}

double FloatOp(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kMul:
      return a * b;
    case Op::kDiv:
      return a / b;
    case Op::kNeg:
      return -a;
    case Op::kAbs:
      return std::abs(a);
    case Op::kExp:
      return std::exp(a);
    case Op::kLog:
      return std::log(a);
    case Op::kSqrt:
      return std::sqrt(a);
    case Op::kRsqrt:
      return 1 / std::sqrt(a);
    case Op::kTanh:
      return std::tanh(a);
    case Op::kErf:
      return std::erf(a);
    case Op::kNormalCdf:
      // Uses long double: rounding the argument alone would cost a thousand ulp at a = −38.
      return static_cast<double>(
          std::erfc(-static_cast<long double>(a) * std::numbers::sqrt2_v<long double> / 2) / 2);
    case Op::kSigmoid:
      return a < -700 ? std::exp(a) : 1 / (1 + std::exp(-a));  // exp(-a) may overflow
    case Op::kRound:
      return std::rint(a);
    case Op::kFloor:
      return std::floor(a);
    case Op::kCeil:
      return std::ceil(a);
    case Op::kTrunc:
      return std::trunc(a);
    case Op::kPow:
      return std::pow(a, b);
    default:
      return 0;
  }
}

}  // namespace

Scalar EvaluateOp(Op op, DType dtype, Scalar a, Scalar b, Scalar c) {
  switch (op) {
    case Op::kMin:
      return b < a ? b : a;
    case Op::kMax:
      return a < b ? b : a;
    case Op::kLess:
      return a < b;
    case Op::kLessEqual:
      return a <= b;
    case Op::kEqual:
      return a == b;
    case Op::kAnd:
      if (dtype != DType::kBool) return IntegerOp(op, dtype, a, b);
      return a.IsTrue() && b.IsTrue();
    case Op::kOr:
      return a.IsTrue() || b.IsTrue();
    case Op::kNot:
      return !a.IsTrue();
    case Op::kSelect:
      return a.IsTrue() ? b : c;
    case Op::kCast:
      return CastTo(dtype, a);
    default:
      return IsFloat(dtype) ? Scalar(FloatOp(op, a.real(), b.real())) : IntegerOp(op, dtype, a, b);
  }
}

Scalar CombineScalars(Reducer reducer, int component, DType dtype, absl::Span<const Scalar> left,
                      absl::Span<const Scalar> right) {
  switch (reducer) {
    case Reducer::kNone:
      return right[component];
    case Reducer::kSum:
      return EvaluateOp(Op::kAdd, dtype, left[0], right[0]);
    case Reducer::kProd:
      return EvaluateOp(Op::kMul, dtype, left[0], right[0]);
    case Reducer::kMin:
      return EvaluateOp(Op::kMin, dtype, left[0], right[0]);
    case Reducer::kMax:
      return EvaluateOp(Op::kMax, dtype, left[0], right[0]);
    case Reducer::kArgMax:
    case Reducer::kArgMin: {
      // The earlier index wins ties, in the order 0, 1, 2, …, and then the negative ones.
      const bool better = reducer == Reducer::kArgMax ? left[0] < right[0] : right[0] < left[0];
      const bool right_real = Scalar(0) <= right[1], left_negative = left[1] < Scalar(0);
      const bool earlier = right_real == left_negative ? right_real : right[1] < left[1];
      const bool wins = better || (left[0] == right[0] && earlier);
      return wins ? right[component] : left[component];
    }
    case Reducer::kOnlineSoftmax: {
      const double max = std::max(left[0].real(), right[0].real());
      if (component == 0) return max;
      const auto term = [&](absl::Span<const Scalar> side) {
        const double own = side[0].real();
        // The sum of an empty side is 0, or NaN if its elements were NaN.
        return side[1].real() * (own == -INFINITY ? 0 : std::exp(own - max));
      };
      return term(left) + term(right);
    }
  }
  return 0;
}

}  // namespace hone::ir

#include "common/ir/error_bound.h"

#include <cmath>

#include "common/ir/arithmetic.h"

namespace hone::ir {

double Exponential(double a) { return std::exp(a); }
double SquareRoot(double a) { return std::sqrt(a); }
double Logarithm(double a) { return std::log(a); }
double Power(double a, double b) { return std::pow(a, b); }
double Whole(Op op, double a) { return EvaluateOp(op, DType::kF64, a).real(); }

double MagnitudeOfConstant(double value) { return std::isinf(value) ? 0 : std::abs(value); }

double UnitRoundoff(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0x1p-11;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF32:
      return 0x1p-24;
    case DType::kF64:
      return 0x1p-53;
    case DType::kF8E4M3:
      return 0x1p-4;
    case DType::kF8E5M2:
      return 0x1p-3;
    default:
      return 0;
  }
}

double LeastInteger(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return -0x1p7;
    case DType::kI32:
      return -0x1p31;
    case DType::kI64:
      return -0x1p63;
    default:
      return 0;
  }
}

double MostInteger(DType dtype) {
  if (dtype == DType::kBool) return 1;
  return dtype == DType::kU8 ? 0x1p8 - 1 : -LeastInteger(dtype) - 1;
}

bool IsWidening(DType from, DType to) {
  return IsFloat(from) && IsFloat(to) && (from == to || DTypeBytes(from) < DTypeBytes(to));
}

bool IsComparison(Op op) { return op >= Op::kLess && op <= Op::kEqual; }

bool RoundsToWhole(Op op) { return op >= Op::kRound && op <= Op::kTrunc; }

bool LosesDigits(DType from, DType to) {
  return IsFloat(from) && to != DType::kBool && !IsWidening(from, to);
}

}  // namespace hone::ir

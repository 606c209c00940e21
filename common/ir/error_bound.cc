#include "common/ir/error_bound.h"

#include <cmath>

namespace hone::ir {

double Exponential(double a) { return std::exp(a); }
double SquareRoot(double a) { return std::sqrt(a); }

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
    default:
      return 0;
  }
}

double CastRounding(DType from, DType to) {
  const bool exact = from == DType::kI8 || from == DType::kU8 || from == DType::kBool;
  if (!IsFloat(to) || exact) return 0;
  return IsFloat(from) && UnitRoundoff(to) <= UnitRoundoff(from) ? 0 : StoreRounding(to);
}

}  // namespace hone::ir

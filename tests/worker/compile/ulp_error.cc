#include "tests/worker/compile/ulp_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hone::codegen {

using ir::DType;

namespace {

struct Format {
  int digits;
  int min_exponent;  // of the smallest normal number, as in frexp's 2^(e−1)
};
Format FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {11, -13};
    case DType::kBF16:
      return {8, -125};
    case DType::kF64:
      return {53, -1021};
    default:
      return {24, -125};
  }
}

}  // namespace

double UlpError(DType dtype, double got, long double exact) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (std::isnan(exact)) return std::isnan(got) ? 0 : kInfinity;
  const double rounded = ir::RoundTo(dtype, static_cast<double>(exact));
  if (std::isinf(got) && got == rounded) return 0;
  if (!std::isfinite(got) || !std::isfinite(rounded)) return kInfinity;
  int exponent;
  std::frexp(exact, &exponent);
  const Format format = FormatOf(dtype);
  return static_cast<double>(
      std::ldexp(std::fabs(got - exact), format.digits - std::max(exponent, format.min_exponent)));
}

long double ExactNormalCdf(long double x) {
  // 1/√2 as a sum of two numbers.
  constexpr long double kHigh = 0xb.504f333f9de6484p-4L, kLow = 0xb.2fb1366ea957d3ep-69L;
  const long double y = -x * kHigh;
  const long double value = std::erfc(y) / 2;
  if (!(std::fabs(x) < 200)) return value;  // 0, 1 or NaN
  const long double lost = std::fma(-x, kHigh, -y) - x * kLow;
  // The derivative of erfc(y) / 2 is −e^(−y²) / √π.
  return value - lost * std::exp(-y * y) * 0.564189583547756286948L;
}

}  // namespace hone::codegen

// Draws operands and perturbs them: no result may leave its bound.
#include "common/ir/error_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/base/rng.h"
#include "common/ir/arithmetic.h"

namespace hone::ir {
namespace {

// A number of any size and sign; often a whole one.
double DrawNumber(Rng& rng) {
  const double number = std::ldexp(2 * rng.Uniform() - 1, static_cast<int>(rng.Below(12)) - 5);
  return rng.Below(3) == 0 ? std::rint(number) : number;
}
// An error between 0 and a multiple of the number; often 0.
double DrawError(Rng& rng, double of) {
  if (rng.Below(3) == 0) return 0;
  return std::abs(of) * std::ldexp(1 + rng.Uniform(), -static_cast<int>(rng.Below(40)));
}
// A number within the error, often at an end.
double Within(Rng& rng, double value, double error) {
  const uint64_t place = rng.Below(4);
  const double share = place == 0 ? -1 : place == 1 ? 1 : 2 * rng.Uniform() - 1;
  return value + share * error;
}

TEST(ErrorBoundTest, PowersOfPerturbedOperandsStayWithinTheBound) {
  Rng rng(5);
  int bounded = 0, of_whole = 0;
  for (int draw = 0; draw < 100'000; ++draw) {
    const double x = DrawNumber(rng), unit = rng.Below(2) == 0 ? 1 : 0x1p-22;
    const bool may_be_zero = rng.Below(4) == 0;
    const double y = may_be_zero ? 1.0 + rng.Below(4) : DrawNumber(rng), power = std::pow(x, y);
    Operands<double> of = {x, DrawError(rng, x) / unit, y, DrawError(rng, y) / unit};
    if (may_be_zero) of.a = 2 * rng.Uniform() / unit;
    if (may_be_zero || rng.Below(4) == 0) of.b = 0;
    const double error = unit * ErrorOfPower(unit, power, of);
    if (!std::isfinite(error)) continue;
    ++bounded;
    of_whole += of.a > 0 && std::abs(x) < unit * of.a;
    for (int perturbation = 0; perturbation < 8; ++perturbation) {
      const double moved = std::pow(Within(rng, x, unit * of.a), Within(rng, y, unit * of.b));
      if (moved == power || (std::isnan(moved) && std::isnan(power))) continue;
      ASSERT_LE(std::abs(moved - power), error * (1 + 1e-9) + 1e-13 * std::abs(power))
          << x << " ± " << unit * of.a << " to the power of " << y << " ± " << unit * of.b;
    }
  }
  EXPECT_GT(bounded, 50'000);
  EXPECT_GT(of_whole, 500);
}

// The square of a number that may be 0 has a bound, close to that of a product.
TEST(ErrorBoundTest, SquaresOfDifferencesHaveTightBounds) {
  constexpr double kUnit = 0x1p-22;
  for (const double difference : {0.0, 1e-3, -1e-3, 0.5}) {
    const double square = difference * difference;
    const double bound = ErrorOfPower<double>(kUnit, square, {difference, 2, 2, 0});
    EXPECT_LE(bound, 2 * 2 * (std::abs(difference) + 2 * kUnit) * 1.01) << difference;
  }
}

TEST(ErrorBoundTest, RoundingsToWholeNumbersStayWithinTheBound) {
  Rng rng(7);
  int jumps = 0;
  for (int draw = 0; draw < 20'000; ++draw) {
    for (const Op op : {Op::kRound, Op::kFloor, Op::kCeil, Op::kTrunc}) {
      const double x = DrawNumber(rng), error = DrawError(rng, x);
      const double bound = WholeRounding(op, x, error);
      jumps += bound > 0;
      const double moved = Whole(op, Within(rng, x, error));
      ASSERT_LE(std::abs(moved - Whole(op, x)), bound)
          << InfoOf(op).name << " " << x << " ± " << error;
    }
  }
  EXPECT_GT(jumps, 1000);
}

TEST(ErrorBoundTest, ShiftsOfPerturbedIntegersStayWithinTheBound) {
  Rng rng(9);
  int bounded = 0;
  for (const DType dtype : {DType::kI8, DType::kU8, DType::kI32, DType::kI64}) {
    // Beyond 2^53, doubles do not hold every integer.
    const double least = std::max(LeastInteger(dtype), -0x1p40);
    const double most = std::min(MostInteger(dtype), 0x1p40);
    const auto draw = [&](double low, double high) {
      return std::rint(std::clamp(low + (high - low) * rng.Uniform(), least, most));
    };
    for (int i = 0; i < 20'000; ++i) {
      const Op op = rng.Below(2) == 0 ? Op::kShiftLeft : Op::kShiftRight;
      const double size = std::ldexp(1, static_cast<int>(rng.Below(40)));
      const double a = draw(-size, size), n = draw(-3, 40);
      const double a_error = rng.Below(2) == 0 ? 0.0 : rng.Below(5);
      const double n_error = rng.Below(3) == 0 ? rng.Below(3) : 0;
      const auto shift = [&](double x, double count) {
        return EvaluateOp(op, dtype, static_cast<int64_t>(x), static_cast<int64_t>(count)).real();
      };
      const double value = shift(a, n);
      const double bound = RoundingOf<double>(op, dtype, value, {a, a_error, n, n_error});
      bounded += bound > 0 && bound < most - least;
      for (int perturbation = 0; perturbation < 4; ++perturbation) {
        const double x = draw(a - a_error, a + a_error), count = draw(n - n_error, n + n_error);
        ASSERT_LE(std::abs(shift(x, count) - value), bound)
            << a << " " << InfoOf(op).name << " " << n << " in " << DTypeName(dtype);
      }
    }
  }
  EXPECT_GT(bounded, 1000);
}

}  // namespace
}  // namespace hone::ir

// pow of compiled kernels: its special values, its accuracy in ulp of libm's result in long double,
// and equal bits for scalars and vectors.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "tests/status.h"
#include "tests/worker/compile/compiled_program.h"
#include "tests/worker/compile/run_trace.h"
#include "tests/worker/compile/ulp_error.h"

namespace hone::codegen {
namespace {

using ir::DType;
using ir::Values;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Pairs {
  Values x, y;
  void Add(DType dtype, double base, double exponent) {
    x.push_back(ir::RoundTo(dtype, base));
    y.push_back(ir::RoundTo(dtype, exponent));
  }
};

// Bases and exponents at which the result changes its kind, each with each.
Pairs SpecialPairs(DType dtype) {
  const bool f64 = dtype == DType::kF64;
  Values values = {kNan};
  for (const double v : {0.0,
                         0x1p-1074,
                         0x1p-1022,
                         0x1p-149,
                         0x1p-126,
                         1e-30,
                         1.0 / 3,
                         0.5,
                         0.75,
                         0.9999999,
                         1 - 0x1p-24,
                         1 - 0x1p-53,
                         1.0,
                         1 + 0x1p-52,
                         1 + 0x1p-23,
                         1.5,
                         2.0,
                         2.5,
                         3.0,
                         4.0,
                         5.0,
                         10.0,
                         31.0,
                         126.0,
                         127.5,
                         128.0,
                         149.0,
                         150.0,
                         1023.0,
                         1024.0,
                         1074.0,
                         1075.0,
                         16777215.0,
                         16777216.0,
                         0x1p31 + 1,
                         0x1p53 - 1,
                         0x1p53,
                         0x1p64,
                         1e30,
                         0x1.fffffep127,
                         0x1.fffffffffffffp1023,
                         kInfinity}) {
    values.insert(values.end(), {v, -v});
  }
  if (!f64) {
    for (double& value : values) value = ir::RoundTo(dtype, value);
  }
  Pairs pairs;
  for (const double x : values) {
    for (const double y : values) pairs.Add(dtype, x, y);
  }
  return pairs;
}

// Pairs whose power is in range, also close to its ends, and pairs of any bits.
Pairs RandomPairs(DType dtype, size_t count) {
  const bool f64 = dtype == DType::kF64;
  const double reach = f64 ? 1080 : dtype == DType::kF16 ? 26 : 152;
  Rng rng(19, 0);
  Pairs pairs;
  while (pairs.x.size() < count) {
    const uint64_t kind = rng() % 8;
    if (kind == 0) {
      const uint64_t x = rng(), y = rng();
      pairs.Add(dtype, f64 ? std::bit_cast<double>(x) : std::bit_cast<float>(uint32_t(x)),
                f64 ? std::bit_cast<double>(y) : std::bit_cast<float>(uint32_t(y)));
      continue;
    }
    const double scale = kind == 1   ? std::ldexp(1.0, -static_cast<int>(rng() % 50))
                         : kind == 2 ? reach * 0.9
                         : kind == 3 ? 1e-3
                                     : 3;
    double x = ir::RoundTo(dtype, std::exp2(scale * (2 * rng.Uniform() - 1)));
    const double exponent = reach * (2 * rng.Uniform() - 1) / std::log2(x);
    if (kind >= 6) {
      const double whole = kind == 6 ? std::rint(exponent) : std::rint(8 * rng.Uniform() - 4);
      pairs.Add(dtype, rng() % 2 == 0 ? -x : x, whole);
    } else {
      pairs.Add(dtype, x, kind == 5 ? 4 * rng.Uniform() - 2 : exponent);
    }
  }
  return pairs;
}

std::unique_ptr<CompiledProgram> Kernel(const target::Target& target, DType dtype, int64_t elements,
                                        int lanes) {
  const absl::string_view name = ir::DTypeName(dtype);
  const std::string workload =
      absl::StrCat("workload f\ninput X: ", name, "[", elements, "]\ninput Y: ", name, "[",
                   elements, "]\noutput Z[i: ", elements, "] = pow(X[i], Y[i])\n");
  const auto program = ReplayText(WithVectors(workload, {"Z"}, lanes));
  EXPECT_THAT(program, IsOk());
  auto compiled = CompiledProgram::Load(*program, target);
  EXPECT_THAT(compiled, IsOk());
  return compiled.ok() ? *std::move(compiled) : nullptr;
}

Values Powers(const target::Target& target, DType dtype, const Pairs& pairs, int lanes) {
  const auto kernel = Kernel(target, dtype, static_cast<int64_t>(pairs.x.size()), lanes);
  if (kernel == nullptr) return {};
  const auto outputs = kernel->Run({pairs.x, pairs.y});
  EXPECT_THAT(outputs, IsOk());
  return outputs.ok() ? (*outputs)[0] : Values();
}

// Expects every power within `limit` ulp, and 0, ∞ and NaN exactly, with their signs.
void ExpectWithin(double limit, DType dtype, const Pairs& pairs, const Values& powers) {
  ASSERT_EQ(powers.size(), pairs.x.size());
  double worst = 0;
  for (size_t i = 0; i < powers.size(); ++i) {
    const long double exact = std::pow(static_cast<long double>(pairs.x[i]), pairs.y[i]);
    const double ulp = UlpError(dtype, powers[i], exact);
    worst = std::max(worst, ulp);
    const bool same_sign = std::isnan(exact) || std::signbit(exact) == std::signbit(powers[i]);
    ASSERT_TRUE(ulp <= limit && same_sign)
        << "pow(" << pairs.x[i] << ", " << pairs.y[i] << ") is " << powers[i] << ", not "
        << static_cast<double>(exact) << ": " << ulp << " ulp in " << ir::DTypeName(dtype);
  }
  std::cout << ir::DTypeName(dtype) << " pow: " << worst << " ulp\n";
}

double LimitOf(DType dtype) { return dtype == DType::kF64 ? 1 : 0.502; }

class PowerTest : public testing::TestWithParam<DType> {};

TEST_P(PowerTest, SpecialValuesAreThoseOfC) {
  const Pairs pairs = SpecialPairs(GetParam());
  for (const target::Target& target : RunnableTargets()) {
    for (const int lanes : {1, 8, 16}) {
      ExpectWithin(LimitOf(GetParam()), GetParam(), pairs,
                   Powers(target, GetParam(), pairs, lanes));
    }
  }
}

TEST_P(PowerTest, RandomPowersAreWithinTheirUlp) {
  const Pairs pairs = RandomPairs(GetParam(), 1 << 20);
  for (const target::Target& target : RunnableTargets()) {
    ExpectWithin(LimitOf(GetParam()), GetParam(), pairs, Powers(target, GetParam(), pairs, 16));
  }
}

TEST_P(PowerTest, ScalarsAndVectorsOfAnyWidthAndTargetGiveTheSameBits) {
  const Pairs pairs = RandomPairs(GetParam(), 5000);
  std::vector<uint64_t> first;
  for (const target::Target& target : RunnableTargets()) {
    for (const int lanes : {1, 4, 5, 8, 16, 24, 64}) {
      std::vector<uint64_t> bits;
      for (const double power : Powers(target, GetParam(), pairs, lanes)) {
        bits.push_back(std::isnan(power) ? 0x7ff8000000000000 : std::bit_cast<uint64_t>(power));
      }
      if (first.empty()) first = bits;
      EXPECT_EQ(first, bits) << lanes << " lanes";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Floats, PowerTest,
                         testing::Values(DType::kF16, DType::kBF16, DType::kF32, DType::kF64),
                         [](const auto& info) { return std::string(ir::DTypeName(info.param)); });

}  // namespace
}  // namespace hone::codegen

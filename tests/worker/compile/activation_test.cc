// The accuracy of gelu and silu of the operator library. The errors of compiled code are measured
// in ulp of the exact result, over [−40, 40] and where results become denormal, with vectors of 256
// and 512 bits.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/operator/operator.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"
#include "tests/worker/compile/ulp_error.h"

namespace hone::codegen {
namespace {

using ir::DType;
using ir::Values;

long double ExactGelu(long double x) { return x * ExactNormalCdf(x); }
long double ExactSilu(long double x) { return x / (1 + std::exp(-x)); }

// An interval of inputs and the largest error allowed there.
struct Range {
  const char* op;
  DType dtype;
  double low, high;
  double max_ulp;
};

// The intervals reach from the input of the smallest nonzero result to 40.
const Range kRanges[] = {
    {"gelu", DType::kF32, -12.9, -3, 4.5},    {"gelu", DType::kF32, -3, 0, 4.5},
    {"gelu", DType::kF32, 0, 40, 4.5},        {"gelu", DType::kF32, -14.5, -12.9, 4.5},
    {"gelu", DType::kF32, -40, -14.5, 0.5},   {"gelu", DType::kF64, -37.5, -3, 4.5},
    {"gelu", DType::kF64, -3, 0, 4.5},        {"gelu", DType::kF64, 0, 40, 4.5},
    {"gelu", DType::kF64, -38.6, -37.5, 4.5}, {"gelu", DType::kF64, -40, -38.6, 0.5},
    {"silu", DType::kF32, -40, -3, 4.5},      {"silu", DType::kF32, -3, 0, 4},
    {"silu", DType::kF32, 0, 40, 3},          {"silu", DType::kF32, -110, -40, 4.5},
    {"silu", DType::kF64, -40, -3, 4.5},      {"silu", DType::kF64, -3, 0, 4},
    {"silu", DType::kF64, 0, 40, 3},          {"silu", DType::kF64, -760, -700, 4.5},
};

class ActivationTest : public testing::TestWithParam<Range> {};

TEST_P(ActivationTest, KeepsItsDigits) {
  const Range& range = GetParam();
  constexpr int64_t kCount = 1 << 16;
  Values inputs;
  Rng rng(13, 0);
  while (inputs.size() < kCount) {
    const double even = range.low + (range.high - range.low) * rng.Uniform();
    // If 0 is an end of the interval, a quarter of the inputs is close to 0, with every exponent
    // and denormal numbers.
    const bool small = (range.low == 0 || range.high == 0) && inputs.size() % 4 == 0;
    const int least = range.dtype == DType::kF64 ? 1070 : 145;
    const double x = ir::RoundTo(
        range.dtype, small ? std::ldexp(even, -static_cast<int>(rng.Below(least))) : even);
    inputs.push_back(x);
  }
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto workload,
      op::BuildWorkload(range.op, {"m=1", absl::StrCat("n=", kCount),
                                   absl::StrCat("dtype=", DTypeName(range.dtype))}));
  auto* const exact = std::string(range.op) == "gelu" ? ExactGelu : ExactSilu;
  const int element = range.dtype == DType::kF64 ? 64 : 32;
  for (const target::Target& target : RunnableTargets()) {
    for (const int bits : {256, 512}) {
      const std::string trace =
          absl::StrCat("trace 1\nb0 = block(\"Y\")\nl0, l1 = loops(b0)\nl2, l3 = split(l1, 0, ",
                       bits / element, ")\nvectorize(l3)\n");
      HONE_ASSERT_OK_AND_ASSIGN(const auto outputs,
                                RunTrace(target, workload.ToText() + trace, {inputs}));
      double worst = 0, at = 0;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const double ulp = UlpError(range.dtype, outputs[0][i], exact(inputs[i]));
        if (!(ulp <= worst)) {
          worst = ulp;
          at = inputs[i];
        }
      }
      std::cout << range.op << " " << ir::DTypeName(range.dtype) << " [" << range.low << ", "
                << range.high << "] " << target.cpu << " " << bits << ": " << worst << " ulp at "
                << at << "\n";
      EXPECT_LE(worst, range.max_ulp) << "at " << at << " on " << target.cpu << ", " << bits;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranges, ActivationTest, testing::ValuesIn(kRanges), [](const auto& info) {
  return absl::StrCat(info.param.op, "_", ir::DTypeName(info.param.dtype), "_", info.index);
});

}  // namespace
}  // namespace hone::codegen

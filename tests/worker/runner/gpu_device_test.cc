// The check of outputs accepts the errors that a device's interface allows, and no much larger
// ones.
#include "worker/runner/gpu_device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"
#include "worker/runner/check.h"
#include "worker/runner/signature.h"

namespace hone::runner {
namespace {

struct Documented {
  const char* call;
  double opencl, cuda;  // units in the last place
};
constexpr Documented kDocumented[] = {
    {"A[i] / B[i]", 2.5, 0.5},   {"exp(A[i])", 3, 2.5},        {"log(A[i])", 3, 1.5},
    {"sqrt(A[i])", 3, 0.5},      {"rsqrt(A[i])", 2, 2.5},      {"tanh(A[i])", 5, 2.5},
    {"erf(A[i])", 16, 2.5},      {"pow(A[i], B[i])", 16, 8.5}, {"sigmoid(A[i])", 7.5, 5},
    {"normal_cdf(A[i])", 17, 7},
};

// Whether the check accepts a result that is `ulps` above 1, where a unit in the last place is
// largest relative to the value.
bool Accepts(const char* call, target::Kind kind, double ulps) {
  const auto workload = ir::ParseWorkload(
      absl::StrCat("workload w\ninput A: f32[1]\ninput B: f32[1]\noutput C[i: 1] = ", call, "\n"));
  EXPECT_THAT(workload, IsOk());
  const Signature signature = SignatureOf(*workload, ErrorsOf(kind));
  const float result = 1;
  const double value = 1 - ulps * 0x1p-23, magnitude = value;
  const Expected expected{.values = &value, .magnitudes = &magnitude};
  return CheckOutput(signature.outputs[0], &result, expected, signature, 0).ok;
}

TEST(MathErrorsTest, TheCheckAllowsWhatTheInterfaceAllows) {
  for (const Documented& function : kDocumented) {
    EXPECT_TRUE(Accepts(function.call, target::Kind::kOpenCl, function.opencl)) << function.call;
    EXPECT_FALSE(Accepts(function.call, target::Kind::kOpenCl, 8 * function.opencl))
        << function.call;
    EXPECT_TRUE(Accepts(function.call, target::Kind::kCuda, function.cuda)) << function.call;
    EXPECT_FALSE(Accepts(function.call, target::Kind::kCuda, 8 * function.cuda)) << function.call;
  }
}

TEST(MathErrorsTest, TheFunctionsOfACpuAreAccurate) {
  for (const Documented& function : kDocumented) {
    EXPECT_FALSE(Accepts(function.call, target::Kind::kCpu, 4)) << function.call;
  }
}

TEST(MathErrorsTest, SumsAreRoundedOnceEverywhere) {
  for (const target::Kind kind : {target::Kind::kOpenCl, target::Kind::kCuda}) {
    for (const ir::Op op : {ir::Op::kAdd, ir::Op::kSub, ir::Op::kMul}) {
      EXPECT_EQ(ErrorsOf(kind)(op), 1);
    }
  }
}

}  // namespace
}  // namespace hone::runner

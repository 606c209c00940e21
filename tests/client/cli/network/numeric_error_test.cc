#include "client/cli/network/numeric_error.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kConvolution[] = R"(workload conv
input X: f32[1, 8, 8, 4]
input W: f32[3, 3, 4, 8] constant
output Y[n: 1, h: 8, w: 8, co: 8] =
    sum(r: 3, s: 3, ci: 4 where 0 <= h + r - 1 < 8, 0 <= w + s - 1 < 8)
    X[n, h + r - 1, w + s - 1, ci] * W[r, s, ci, co]
trace 1
)";

double Error(const std::vector<float>& got, const std::vector<float>& expected) {
  const auto bytes = [](const std::vector<float>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  };
  return ErrorOf({ir::DType::kF32, {static_cast<int64_t>(got.size())}}, bytes(got),
                 bytes(expected));
}

TEST(ErrorOfTest, IsRelativeToTheLargestMagnitude) {
  EXPECT_EQ(Error({1, -4, 0}, {1, -4, 0}), 0);
  EXPECT_EQ(Error({1, -4, 0.5}, {1, -4, 0}), 0.125);
  EXPECT_EQ(Error({0, 0}, {0, 0}), 0);
  EXPECT_EQ(Error({1, 0}, {0, 0}), INFINITY);
}

TEST(ErrorOfTest, NanAndInfinityMustBeInTheSamePlaces) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = INFINITY;
  EXPECT_EQ(Error({nan, inf, 2}, {nan, inf, 2}), 0);
  EXPECT_EQ(Error({nan, 2}, {1, 2}), INFINITY);
  EXPECT_EQ(Error({inf, 2}, {-inf, 2}), INFINITY);
  EXPECT_EQ(Error({inf, 2}, {1, 2}), INFINITY);
}

template <typename T>
OutputComparison Compared(ir::DType dtype, const std::vector<T>& got,
                          const std::vector<T>& expected, const ErrorLimits& limits) {
  const auto bytes = [](const std::vector<T>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), sizeof(T) * values.size());
  };
  return CompareOutput("Y", {dtype, {2, static_cast<int64_t>(got.size()) / 2}}, bytes(got),
                       bytes(expected), limits);
}

TEST(CompareOutputTest, SmallElementsHaveTheirOwnLimit) {
  const std::vector<float> expected = {1000, 1e-3, 0, 5}, got = {1000.05, 2e-3, 0, 5};
  EXPECT_FALSE(Compared(ir::DType::kF32, got, expected, {.max_error = 1e-4}).fails);
  EXPECT_TRUE(Compared(ir::DType::kF32, got, expected, {.max_error = 1e-5}).fails);
  const OutputComparison fails = Compared(ir::DType::kF32, got, expected, {.rtol = 1e-3});
  EXPECT_TRUE(fails.fails);
  EXPECT_EQ(fails.beyond_limits, 1);
  ASSERT_TRUE(fails.worst.has_value());
  EXPECT_EQ(fails.worst->index, (std::vector<int64_t>{0, 1}));
  EXPECT_THAT(WorstText(fails, {.rtol = 1e-3}),
              AllOf(HasSubstr("Y[0, 1] is 0.002"), HasSubstr("1 of the 4 elements exceeds")));
  EXPECT_FALSE(Compared(ir::DType::kF32, got, expected, {.atol = 1e-2, .rtol = 1e-3}).fails);
  EXPECT_THAT(std::string(CheckComparisons({fails}, {.rtol = 1e-3}).message()),
              HasSubstr("more than --rtol 0.001: Y[0, 1]"));
  EXPECT_FALSE(Compared(ir::DType::kF32, got, got, {}).worst.has_value());
}

TEST(CompareOutputTest, NanAndInfinityMustMatch) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = INFINITY;
  const ErrorLimits wide = {.atol = 1e300, .rtol = 1e300};
  EXPECT_FALSE(Compared<float>(ir::DType::kF32, {nan, inf}, {nan, inf}, wide).fails);
  for (const float other : {1.0f, -inf, nan}) {
    EXPECT_TRUE(Compared<float>(ir::DType::kF32, {1, other}, {1, inf}, wide).fails) << other;
  }
  EXPECT_TRUE(Compared<float>(ir::DType::kF32, {1, nan}, {1, 1}, wide).fails);
}

TEST(CompareOutputTest, IntegersAreComparedExactly) {
  const int64_t large = int64_t{1} << 62;
  const std::vector<int64_t> expected = {large, -large - 3}, got = {large + 1, -large - 3};
  for (const ErrorLimits& limits :
       {ErrorLimits{.max_error = 1}, ErrorLimits{.atol = 0.5}, ErrorLimits{.rtol = 1}}) {
    EXPECT_TRUE(Compared(ir::DType::kI64, got, expected, limits).fails);
    EXPECT_FALSE(Compared(ir::DType::kI64, got, got, limits).fails);
  }
  const OutputComparison one = Compared(ir::DType::kI64, got, expected, {.atol = 1});
  EXPECT_FALSE(one.fails);
  EXPECT_EQ(one.worst->got, "4611686018427387905");
  EXPECT_EQ(one.worst->difference, 1);
  EXPECT_GT(one.max_error, 0);
  const int64_t least = std::numeric_limits<int64_t>::min();
  EXPECT_GT(Compared<int64_t>(ir::DType::kI64, {least, 0}, {-(least + 1), 0}, {}).max_error, 1.9);
  EXPECT_TRUE(Compared<uint8_t>(ir::DType::kBool, {1, 0}, {0, 0}, {.atol = 1}).fails);
}

TEST(AlgorithmOfTest, NamesTheRewritesThatNeedATolerance) {
  EXPECT_EQ(AlgorithmOf(kConvolution), "");
  EXPECT_EQ(AlgorithmOf(std::string(kConvolution) + "rewrite(\"winograd\", \"Y\", 4)\n"),
            "winograd 4");
  EXPECT_EQ(AlgorithmOf(std::string(kConvolution) + "rewrite(\"im2col\", \"Y\")\n"), "")
      << "only the order of the sums changes";
  EXPECT_EQ(AlgorithmOf("not a trace"), "");
}

TEST(AlgorithmsTextTest, CountsTheTasks) {
  EXPECT_EQ(AlgorithmsText(std::vector<std::string>{"", ""}), "");
  EXPECT_EQ(AlgorithmsText(std::vector<std::string>{"winograd 4", "", "winograd 2", "winograd 4"}),
            "winograd 2 in 1 task, winograd 4 in 2 tasks");
}

TEST(ErrorTextTest, TheErrorMayBeUnknown) {
  EXPECT_EQ(ErrorText(2e-6),
            "; they change the outputs by at most 2.0e-06 of the largest magnitude, for random "
            "inputs");
  EXPECT_EQ(ErrorText(absl::NotFoundError("hone-builder is missing")),
            "; how much they change the outputs is not known: hone-builder is missing");
}

}  // namespace
}  // namespace hone::cli

#include "client/cli/network_error.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

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

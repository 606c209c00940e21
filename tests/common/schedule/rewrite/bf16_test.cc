#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/schedule/rewrite/rewrite.h"
#include "tests/common/schedule/rewrite/rewrite_check.h"
#include "tests/status.h"

namespace hone::schedule {
namespace {

using testing::HasSubstr;

const char kConv[] =
    "workload conv\ninput X: f32[2, 7, 6, 16]\ninput W: f32[3, 3, 16, 4] constant\n"
    "output Y[n: 2, h: 4, w: 6, co: 4] = sum(r: 3, s: 3, ci: 16 where 0 <= 2*h + r - 1 < 7, 0 <= w "
    "+ s - 1 < 6)\n"
    "  X[n, 2*h + r - 1, w + s - 1, ci] * W[r, s, ci, co]\n";

TEST(Bf16Test, RoundsBothFactors) {
  const ir::Workload original = Parsed(kConv);
  HONE_ASSERT_OK_AND_ASSIGN(const auto rewritten, ApplyRewriteTo(original, "bf16", "Y", {}));
  ASSERT_EQ(rewritten.stages.size(), 3);
  for (const int s : {0, 1}) {
    EXPECT_EQ(rewritten.tensors[rewritten.stages[s].tensors[0]].dtype, ir::DType::kBF16);
  }
  EXPECT_EQ(rewritten.stages[2].guards.size(), 2);
}

TEST(Bf16Test, TheErrorIsBelowTheTolerance) {
  const ir::Workload original = Parsed(kConv);
  const ir::Workload rewritten = ApplyRewriteTo(original, "bf16", "Y", {}).value();
  const double tolerance = RewriteTolerance(original, "bf16", "Y", {}).value();
  EXPECT_NEAR(tolerance, 1.0 / 128, 2e-5);
  Rng rng(1);
  for (const Fill fill : {Fill::kSymmetric, Fill::kPositive}) {
    const RewriteError error = ErrorOf(original, rewritten, RandomInputs(original, fill, rng));
    EXPECT_LT(error.by_element, tolerance);
    EXPECT_GT(error.by_element, tolerance / 100) << "nothing was rounded";
  }
  const RewriteError exact =
      ErrorOf(original, rewritten, RandomInputs(original, Fill::kInteger, rng));
  EXPECT_EQ(exact.by_element, 0) << "small integers are exact in bf16";
}

// The number is halfway between two numbers of bf16, and is rounded to the lower one.
TEST(Bf16Test, TheWorstErrorIsBelowTheTolerance) {
  const ir::Workload original = Parsed(
      "workload product\ninput A: f32[1]\ninput B: f32[1]\n"
      "output Y[i: 1] = sum(k: 1) A[i] * B[k]\n");
  const ir::Workload rewritten = ApplyRewriteTo(original, "bf16", "Y", {}).value();
  const double tolerance = RewriteTolerance(original, "bf16", "Y", {}).value();
  const RewriteError error = ErrorOf(original, rewritten, {{1 + 0x1p-8}, {1 + 0x1p-8}});
  EXPECT_LT(error.by_element, tolerance);
  EXPECT_GT(error.by_element, tolerance * 0.98);
}

TEST(Bf16Test, ATensorThatIsBothFactorsIsRoundedOnce) {
  const ir::Workload rewritten =
      ApplyRewriteTo(Parsed("workload square\ninput X: f32[9, 4]\noutput Y[i: 4] = sum(k: 9) "
                            "X[k, i] * X[k, 3 - i]\n"),
                     "bf16", "Y", {})
          .value();
  EXPECT_EQ(rewritten.stages.size(), 2);
}

TEST(Bf16Test, RejectsOtherStages) {
  EXPECT_THAT(Refusal("workload pool\ninput X: f32[9]\noutput Y[l: 7] = max(k: 3) X[l + k]\n",
                      "bf16", "Y", {}),
              HasSubstr("not a sum of products"));
  EXPECT_THAT(Refusal("workload half\ninput A: f16[4, 8]\ninput B: f16[8]\n"
                      "output Y[i: 4] = sum(k: 8) f32(A[i, k]) * f32(B[k])\n",
                      "bf16", "Y", {}),
              HasSubstr("not plain elements in f32"));
  EXPECT_THAT(Refusal(kConv, "bf16", "Y", {4}), HasSubstr("bf16 takes 0 numbers, not 1"));
}

}  // namespace
}  // namespace hone::schedule

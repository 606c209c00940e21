#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/schedule/rewrite/rewrite.h"
#include "tests/common/schedule/rewrite/rewrite_check.h"
#include "tests/status.h"

namespace hone::schedule {
namespace {

using testing::HasSubstr;

const char kSoftmax[] =
    "workload softmax\ninput X: f32[3, 9]\n"
    "M[i: 3] = max(k: 9) X[i, k]\n"
    "E[i: 3, k: 9] = exp(X[i, k] - M[i])\n"
    "S[i: 3] = sum(k: 9) E[i, k]\n"
    "output Y[i: 3, k: 9] = E[i, k] / S[i]\n";

double SoftmaxError(const std::string& text, const ir::Workload& rewritten) {
  Rng rng(1);
  const ir::Workload original = Parsed(text);
  return ErrorOf(original, rewritten, RandomInputs(original, Fill::kSymmetric, rng)).by_tensor;
}

TEST(OnlineSoftmaxTest, OnePassThroughAnElementWiseStage) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto rewritten,
                            ApplyRewriteTo(Parsed(kSoftmax), "online_softmax", "S", {}));
  ASSERT_EQ(rewritten.stages.size(), 3);  // (M, S), E, Y
  EXPECT_EQ(rewritten.stages[0].reducer, ir::Reducer::kOnlineSoftmax);
  EXPECT_LE(SoftmaxError(kSoftmax, rewritten), 1e-6);
}

// Attention: the scores are a scaled product; exponentials that only the sum read are removed.
TEST(OnlineSoftmaxTest, RowsOfAttention) {
  const std::string text =
      "workload attention\ninput Q: f32[4, 3]\ninput K: f32[5, 3]\ninput V: f32[5, 2]\n"
      "P[i: 4, j: 5] = sum(d: 3) Q[i, d] * K[j, d]\n"
      "T[i: 4, j: 5] = P[i, j] * 0.5\n"
      "M[i: 4] = max(j: 5) T[i, j]\n"
      "E[i: 4, j: 5] = exp(T[i, j] - M[i])\n"
      "S[i: 4] = sum(j: 5) E[i, j]\n"
      "output O[i: 4, d: 2] = sum(j: 5) exp(T[i, j] - M[i]) / S[i] * V[j, d]\n";
  HONE_ASSERT_OK_AND_ASSIGN(const auto rewritten,
                            ApplyRewriteTo(Parsed(text), "online_softmax", "S", {}));
  EXPECT_EQ(rewritten.stages.size(), 4);  // P, T, (M, S), O
  EXPECT_LE(SoftmaxError(text, rewritten), 1e-6);
}

TEST(OnlineSoftmaxTest, AnotherDimensionOfAComputedIndexIsAnotherExpression) {
  EXPECT_THAT(Refusal("workload softmax\ninput T: f32[9, 9]\ninput I: i32[9]\n"
                      "M[i: 3] = max(k: 9) T[at(I[k]), 0]\n"
                      "S[i: 3] = sum(k: 9) exp(T[0, at(I[k])] - M[i])\n"
                      "output Y[i: 3] = M[i] / S[i]\n",
                      "online_softmax", "S", {}),
              HasSubstr("another expression"));
}

TEST(OnlineSoftmaxTest, Refusals) {
  const auto refusal = [](absl::string_view sum, absl::string_view stage) {
    return Refusal(
        absl::StrCat("workload softmax\ninput X: f32[3, 9]\nM[i: 3] = max(k: 9) X[i, k]\n", sum,
                     "output Y[i: 3] = M[i] / S[i]\n"),
        "online_softmax", stage, {});
  };
  EXPECT_THAT(refusal("S[i: 3] = sum(k: 9) exp(X[i, k] - M[i])\n", "M"),
              HasSubstr("the stage is not a sum"));
  EXPECT_THAT(refusal("S[i: 3] = sum(k: 9) X[i, k]\n", "S"), HasSubstr("reads no maximum"));
  EXPECT_THAT(refusal("S[i: 3] = sum(k: 9) X[i, k] - M[i]\n", "S"), HasSubstr("exp(x - maximum)"));
  EXPECT_THAT(refusal("S[i: 3] = sum(k: 9) exp(X[i, k] * 2.0 - M[i])\n", "S"),
              HasSubstr("another expression"));
  EXPECT_THAT(refusal("S[i: 3] = sum(k: 8) exp(X[i, k] - M[i])\n", "S"),
              HasSubstr("other extents"));
  EXPECT_THAT(refusal("S[i: 3] = sum(k: 9) exp(X[i, k] - M[2 - i])\n", "S"),
              HasSubstr("own maximum"));
}

}  // namespace
}  // namespace hone::schedule

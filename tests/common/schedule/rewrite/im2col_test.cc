#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/schedule/rewrite/rewrite.h"
#include "tests/common/schedule/rewrite/rewrite_check.h"

namespace hone::schedule {
namespace {

using testing::HasSubstr;

const char kIm2colConv[] =
    "workload conv\ninput X: f32[2, 7, 6, 3]\ninput W: f32[3, 2, 3, 4] constant\n"
    "output Y[n: 2, h: 4, w: 7, co: 4] = sum(r: 3, s: 2, ci: 3 where 0 <= 2*h + r - 1 < 7, 0 <= w "
    "+ s - 1 < 6)\n"
    "  X[n, 2*h + r - 1, w + s - 1, ci] * W[r, s, ci, co]\n";
const char kIm2colMatmul[] =
    "workload matmul\ninput A: f32[3, 10]\ninput B: f32[10, 4]\noutput C[i: 3, j: 4] = sum(k: 10) "
    "A[i, k] * B[k, j]\n";

TEST(Im2colTest, GathersThePaddedStridedWindow) {
  const ir::Workload rewritten = ExactlyRewritten(kIm2colConv, "im2col", "Y", {});
  ASSERT_EQ(rewritten.stages.size(), 2);
  EXPECT_EQ(rewritten.tensors[rewritten.stages[0].tensors[0]].shape, (ir::Shape{2, 4, 7, 3, 2, 3}));
  EXPECT_EQ(rewritten.stages[0].guards.size(), 2);
  EXPECT_TRUE(rewritten.stages[1].guards.empty());
}

// Without padding, the patches are a plain copy, which compute_inline can remove.
TEST(Im2colTest, NoPaddingNeedsNoReduction) {
  const ir::Workload rewritten = ExactlyRewritten(
      "workload conv1d\ninput X: f32[9, 3]\ninput W: f32[3, 3, 2]\noutput Y[l: 7, co: 2] = sum(k: "
      "3, ci: 3) W[k, ci, co] * X[l + k, ci]\n",
      "im2col", "Y", {});
  EXPECT_EQ(rewritten.stages[0].reducer, ir::Reducer::kNone);
}

// The element at a computed index has the same affine indices as the window, with a 0.
TEST(Im2colTest, ElementsAtComputedIndicesStay) {
  ExactlyRewritten(
      "workload gather\ninput X: f32[9, 3]\ninput I: i32[7] < 3\n"
      "output Y[l: 7] = sum(k: 3) X[l + k, 0] * X[l + k, at(I[l])]\n",
      "im2col", "Y", {});
}

TEST(Im2colTest, MixedPrecisionAndGuardsOfOtherAxesStay) {
  const ir::Workload rewritten = ExactlyRewritten(
      "workload qconv\ninput X: u8[8, 3]\ninput W: i8[3, 3, 2]\n"
      "output Y[l: 8, co: 2] = sum(k: 3, ci: 3 where 0 <= l + k - 1 < 8, 0 <= ci - co + 1 < 3) "
      "i32(X[l + k - 1, ci]) * i32(W[k, ci, co])\n",
      "im2col", "Y", {});
  EXPECT_EQ(rewritten.tensors[rewritten.stages[0].tensors[0]].dtype, ir::DType::kU8);
  EXPECT_EQ(rewritten.stages[1].guards.size(), 1);
}

TEST(Im2colTest, RejectsStagesWithoutAWindow) {
  EXPECT_THAT(Refusal(kIm2colMatmul, "im2col", "C", {}),
              HasSubstr("no factor is read through a window"));
  EXPECT_THAT(Refusal("workload pool\ninput X: f32[9]\noutput Y[l: 7] = max(k: 3) X[l + k]\n",
                      "im2col", "Y", {}),
              HasSubstr("the stage is not a sum"));
  EXPECT_THAT(
      Refusal("workload square\ninput X: f32[9]\noutput Y[l: 7] = sum(k: 3) X[l + k] * X[l + k]\n",
              "im2col", "Y", {}),
      HasSubstr("two factors"));
}

}  // namespace
}  // namespace hone::schedule

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/schedule/rewrite/rewrite.h"
#include "tests/common/schedule/rewrite/rewrite_check.h"

namespace hone::schedule {
namespace {

using testing::HasSubstr;

TEST(PadImageTest, TheCopyContainsThePadding) {
  const ir::Workload rewritten = ExactlyRewritten(
      "workload depthwise\ninput X: f32[2, 3, 5, 6]\ninput W: f32[3, 3, 3] constant\n"
      "output Y[n: 2, c: 3, h: 5, w: 6] = sum(r: 3, s: 3 where 0 <= h + r - 1 < 5, 0 <= w + s - 1 "
      "< 6) X[n, c, h + r - 1, w + s - 1] * W[c, r, s]\n",
      "pad_image", "Y", {});
  ASSERT_EQ(rewritten.stages.size(), 2);
  EXPECT_EQ(rewritten.tensors[rewritten.stages[0].tensors[0]].shape, (ir::Shape{2, 3, 7, 8}));
  EXPECT_EQ(rewritten.stages[0].guards.size(), 2);
  EXPECT_TRUE(rewritten.stages[1].guards.empty());
}

// With stride 2, the even and the odd columns are apart, and the window reads neighbours.
TEST(PadImageTest, AStrideGivesPhasesOfColumns) {
  const ir::Workload rewritten = ExactlyRewritten(
      "workload depthwise\ninput X: f32[3, 5, 7]\ninput W: f32[3, 3, 3] constant\n"
      "output Y[c: 3, h: 3, w: 4] = sum(r: 3, s: 3 where 0 <= 2*h + r - 1 < 5, 0 <= 2*w + s - 1 < "
      "7) X[c, 2*h + r - 1, 2*w + s - 1] * W[c, r, s]\n",
      "pad_image", "Y", {});
  EXPECT_EQ(rewritten.tensors[rewritten.stages[0].tensors[0]].shape, (ir::Shape{3, 7, 2, 5}));
}

TEST(PadImageTest, AWindowInsideTheImageIsAPlainCopy) {
  const ir::Workload rewritten = ExactlyRewritten(
      "workload depthwise\ninput X: f32[3, 9]\ninput W: f32[3, 3]\n"
      "output Y[c: 3, l: 7] = sum(r: 3) X[c, l + r] * W[c, r]\n",
      "pad_image", "Y", {});
  EXPECT_EQ(rewritten.stages[0].reducer, ir::Reducer::kNone);
}

TEST(PadImageTest, Refusals) {
  EXPECT_THAT(Refusal("workload pool\ninput X: f32[9]\noutput Y[l: 7] = max(k: 3) X[l + k]\n",
                      "pad_image", "Y", {}),
              HasSubstr("the stage is not a sum"));
  EXPECT_THAT(
      Refusal("workload square\ninput X: f32[9]\noutput Y[l: 7] = sum(k: 3) X[l + k] * X[l + k]\n",
              "pad_image", "Y", {}),
      HasSubstr("not exactly one tensor"));
  EXPECT_THAT(Refusal("workload guarded\ninput X: f32[9]\ninput W: f32[3]\n"
                      "output Y[l: 7] = sum(k: 3 where k - l < 1) X[l + k] * W[k]\n",
                      "pad_image", "Y", {}),
              HasSubstr("a guard does more"));
  // The padding of the copy would add exp(0).
  EXPECT_THAT(Refusal("workload exponentials\ninput X: f32[9]\n"
                      "output Y[l: 9] = sum(k: 3 where 0 <= l + k - 1 < 9) exp(X[l + k - 1])\n",
                      "pad_image", "Y", {}),
              HasSubstr("not zero where the image is"));
}

}  // namespace
}  // namespace hone::schedule

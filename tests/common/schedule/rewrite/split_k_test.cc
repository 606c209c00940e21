#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/schedule/rewrite/rewrite.h"
#include "tests/common/schedule/rewrite/rewrite_check.h"

namespace hone::schedule {
namespace {

using testing::HasSubstr;

const char kSplitConv[] =
    "workload conv\ninput X: f32[2, 7, 6, 3]\ninput W: f32[3, 2, 3, 4] constant\n"
    "output Y[n: 2, h: 4, w: 7, co: 4] = sum(r: 3, s: 2, ci: 3 where 0 <= 2*h + r - 1 < 7, 0 <= w "
    "+ s - 1 < 6)\n"
    "  X[n, 2*h + r - 1, w + s - 1, ci] * W[r, s, ci, co]\n";
const char kSplitMatmul[] =
    "workload matmul\ninput A: f32[3, 10]\ninput B: f32[10, 4]\noutput C[i: 3, j: 4] = sum(k: 10) "
    "A[i, k] * B[k, j]\n";

TEST(SplitKTest, PartsOfTheLongestAxis) {
  const ir::Workload even = ExactlyRewritten(kSplitMatmul, "split_k", "C", {5});
  EXPECT_EQ(even.tensors[even.stages[0].tensors[0]].shape, (ir::Shape{5, 3, 4}));
  EXPECT_TRUE(even.stages[0].guards.empty());
  const ir::Workload uneven =
      ExactlyRewritten(kSplitMatmul, "split_k", "C", {4});  // 3 + 3 + 3 + 1 terms
  EXPECT_EQ(uneven.stages[0].guards.size(), 1);
  ExactlyRewritten(kSplitConv, "split_k", "Y", {2});
  ExactlyRewritten(kSplitConv, "split_k", "Y", {3});
}

TEST(SplitKTest, AnyMonoid) {
  ExactlyRewritten(
      "workload arg\ninput A: f32[3, 10]\noutput (V, I)[i: 3] = argmax(k: 10) (A[i, k], "
      "index(k))\n",
      "split_k", "V", {3});
  ExactlyRewritten("workload low\ninput A: f32[3, 10]\noutput V[i: 3] = min(k: 10) A[i, k]\n",
                   "split_k", "V", {10});
}

TEST(SplitKTest, Refusals) {
  EXPECT_THAT(Refusal(kSplitMatmul, "split_k", "C", {1}), HasSubstr("1 parts of 10"));
  EXPECT_THAT(Refusal(kSplitMatmul, "split_k", "C", {11}), HasSubstr("2 to 10"));
  EXPECT_THAT(Refusal("workload relu\ninput A: f32[3]\noutput B[i: 3] = max(A[i], 0.0)\n",
                      "split_k", "B", {2}),
              HasSubstr("does not reduce"));
}

// The guard of a shorter last part also bounds the reads through the window.
TEST(SplitKTest, UnequalPartsOfAWindow) {
  const char kStrided[] =
      "workload c\ninput X: f32[15]\ninput W: f32[5]\noutput Y[l: 6] = sum(k: 5) X[2*l + k] * "
      "W[k]\n";
  for (const int64_t parts : {2, 3, 5}) ExactlyRewritten(kStrided, "split_k", "Y", {parts});
}

}  // namespace
}  // namespace hone::schedule

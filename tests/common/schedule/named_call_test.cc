#include "common/schedule/named_call.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr char kTraceText[] =
    "workload matmul\ninput A: f32[64, 32]\ninput B: f32[32, 64]\n"
    "output C[i: 64, j: 64] = sum(k: 32) A[i, k] * B[k, j]\n"
    "trace 1\n"
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "x0, x1 = sample_perfect_tile(l0, parts=2, max_inner=16) = [16, 4]\n"
    "l3, l4 = split(l0, x0, x1)\n"
    "x2 = sample_categorical(candidates=[0, 4]) = [4]\n"
    "annotate(l2, \"prefetch\", x2)\n"
    "l5 = fuse(l3, l4)\n";

std::vector<NamedCall> CallsOf(absl::string_view text) {
  auto file = ParseTraceFile(text);
  EXPECT_THAT(file, IsOk());
  auto calls = NamedCallsOf(std::make_shared<const ir::Workload>(std::move(file->workload)),
                            file->parsed.trace, file->parsed.decisions);
  EXPECT_THAT(calls, IsOk());
  return *std::move(calls);
}

TEST(NamedCallTest, SamplingsAreNamedAfterTheirUse) {
  std::vector<std::string> texts;
  for (const NamedCall& call : CallsOf(kTraceText)) texts.push_back(call.text);
  EXPECT_THAT(texts, ElementsAre("split(i, *, *)", "split(i, *, *)", "annotate(k, \"prefetch\", *)",
                                 "annotate(k, \"prefetch\", *)", "fuse(i_0, i_1)"));
}

TEST(NamedCallTest, OnlySamplingsThatDifferAreChanged) {
  const std::vector<NamedCall> calls = CallsOf(kTraceText);
  EXPECT_TRUE(ChangedDecisions(calls, {16, 4, 4}, 2).empty());
  const std::vector<ChangedDecision> changed = ChangedDecisions(calls, {8, 8, 4}, 2);
  ASSERT_THAT(changed, SizeIs(1));
  EXPECT_EQ(changed[0].text, "split(i, *, *)");
  EXPECT_THAT(changed[0].before, ElementsAre(16, 4));
  EXPECT_THAT(changed[0].after, ElementsAre(8, 8));
  EXPECT_THAT(ChangedDecisions(calls, {8, 8, 0}, 1), SizeIs(2)) << "more than one";
}

}  // namespace
}  // namespace hone::schedule

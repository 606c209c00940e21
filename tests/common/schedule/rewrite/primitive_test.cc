// The primitive `rewrite`: where it is legal in a trace, and its effect on the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/schedule/primitive/algorithm.h"
#include "common/schedule/replay.h"
#include "common/schedule/rewrite/rewrite.h"
#include "tests/common/schedule/rewrite/rewrite_check.h"
#include "tests/common/schedule/tolerance_needed.h"
#include "tests/status.h"

namespace hone::schedule {
namespace {

using testing::HasSubstr;

const char kWinogradConv[] =
    "workload conv\ninput X: f64[1, 5, 4, 2]\ninput W: f64[3, 3, 2, 3] constant\n"
    "output Y[n: 1, h: 5, w: 4, co: 3] = sum(r: 3, s: 3, ci: 2 where 0 <= h + r - 1 < 5, 0 <= w + "
    "s - 1 < 4)\n"
    "  X[n, h + r - 1, w + s - 1, ci] * W[r, s, ci, co]\n";

absl::StatusOr<ir::Program> Replayed(const std::string& workload, const std::string& trace) {
  const auto parsed = ParseTrace(trace);
  if (!parsed.ok()) return parsed.status();
  return Replay(std::make_shared<const ir::Workload>(Parsed(workload)), parsed->trace,
                parsed->decisions);
}

TEST(RewritePrimitiveTest, ProgramComputesTheOriginal) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto program,
                            Replayed(kWinogradConv, "rewrite(\"winograd\", \"Y\", 2)\n"));
  const ir::Workload original = Parsed(kWinogradConv);
  Rng rng(1);
  const auto inputs = RandomInputs(original, Fill::kInteger, rng);
  HONE_ASSERT_OK_AND_ASSIGN(const auto got, ir::Interpret(program, inputs));
  EXPECT_EQ(got, *ir::Interpret(original, inputs));
}

// Stages that depend only on constant inputs run once, before the kernel; others do not.
TEST(RewritePrimitiveTest, ConstantStagesArePrepacked) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto program,
                            Replayed(kWinogradConv, "rewrite(\"winograd\", \"Y\", 4)\n"));
  ASSERT_EQ(program.kernels.size(), 2);
  EXPECT_EQ(program.node(program.kernels[0]).name, "prepack");
  const auto ahead = program.BlocksUnder(program.kernels[0]);
  ASSERT_EQ(ahead.size(), 1);
  EXPECT_EQ(program.BlockOf(ahead[0]).name, "Y_u");
  const std::string variable =
      std::string(kWinogradConv).replace(std::string(kWinogradConv).find(" constant"), 9, "");
  HONE_ASSERT_OK_AND_ASSIGN(const auto whole,
                            Replayed(variable, "rewrite(\"winograd\", \"Y\", 4)\n"));
  EXPECT_EQ(whole.kernels.size(), 1);
}

TEST(RewritePrimitiveTest, FollowsRewritesAndSamplingsOnly) {
  const std::string sampled =
      "x0 = sample_categorical(candidates=[2, 4]) = [4]\nrewrite(\"winograd\", \"Y\", "
      "x0)\nrewrite(\"split_k\", \"Y_m\", 2)\n";
  HONE_ASSERT_OK_AND_ASSIGN(const auto program, Replayed(kWinogradConv, sampled));
  EXPECT_NE(program.FindBlock("Y_m_part"), ir::kNoNode);
  const auto late = Replayed(kWinogradConv,
                             "b0 = block(\"Y\")\nl0, l1, l2, l3, l4, l5, l6 = "
                             "loops(b0)\nparallel(l1)\nrewrite(\"im2col\", \"Y\")\n");
  EXPECT_THAT(late,
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("already been changed")));
  EXPECT_THAT(Replayed(kWinogradConv, "rewrite(\"online_softmax\", \"Y\")\n"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("block Y")));  // the program, with the block marked
}

TEST(RewritePrimitiveTest, EarlierRegistersAreGone) {
  const auto stale =
      Replayed(kWinogradConv,
               "b0 = block(\"Y\")\nrewrite(\"winograd\", \"Y\", 2)\nl0, l1, l2, l3 = loops(b0)\n");
  EXPECT_THAT(stale, StatusIs(absl::StatusCode::kFailedPrecondition,
                              HasSubstr("block b0 no longer exists")));
}

TEST(RewritePrimitiveTest, SameTraceSameProgram) {
  const std::string trace =
      "rewrite(\"winograd\", \"Y\", 4)\nb0 = block(\"Y_m\")\nl0, l1, l2, l3, l4 = "
      "loops(b0)\nparallel(l0)\n";
  EXPECT_EQ(Replayed(kWinogradConv, trace)->StructuralDigest(),
            Replayed(kWinogradConv, trace)->StructuralDigest());
  const std::string other = std::string(trace).replace(trace.find("4)"), 2, "2)");
  EXPECT_NE(Replayed(kWinogradConv, trace)->StructuralDigest(),
            Replayed(kWinogradConv, other)->StructuralDigest());
}

// The tolerance that a job must allow. Strict jobs allow only a different order of summation.
TEST(ToleranceNeededTest, DependsOnTheRewritesOfATrace) {
  const ir::Workload conv = Parsed(kWinogradConv);
  const auto needed = [&](const std::string& trace, std::vector<int64_t> decisions) {
    const auto parsed = ParseTrace(trace);
    EXPECT_THAT(parsed, IsOk());
    return ToleranceNeeded(conv, parsed->trace, decisions);
  };
  EXPECT_EQ(needed("b0 = block(\"Y\")\n", {}).value(), 0);
  EXPECT_EQ(needed("rewrite(\"im2col\", \"Y\")\n", {}).value(), 0);
  const std::string sampled =
      "x0 = sample_categorical(candidates=[2, 4])\nrewrite(\"winograd\", \"Y\", "
      "x0)\nrewrite(\"split_k\", \"Y_m\", 2)\n";
  for (const int64_t m : {2, 4}) {
    EXPECT_EQ(needed(sampled, {m}).value(), RewriteTolerance(conv, "winograd", "Y", {m}).value());
    EXPECT_GT(needed(sampled, {m}).value(), 0);
  }
  // A sampled location is a loop, whose register is numbered apart from the numbers.
  const std::string located =
      "b0 = block(\"Y\")\nx0 = sample_categorical(candidates=[2, 4])\nl0 = "
      "sample_compute_location(b0)\nrewrite(\"winograd\", \"Y\", x0)\n";
  EXPECT_EQ(needed(located, {4, -1}).value(), RewriteTolerance(conv, "winograd", "Y", {4}).value());
  EXPECT_EQ(needed("b0 = block(\"Y\")\nl0 = sample_compute_location(b0)\n", {-1}).value(), 0);
  EXPECT_THAT(needed(sampled, {}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(needed("rewrite(\"winograd\", \"Z\", 2)\n", {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// A packed layout of constant weights needs no rewrite: cache_read copies a constant ahead of time,
// and transform_layout gives the layout.
TEST(ConstantLayoutTest, PackedWeightsAreACopyAheadOfTime) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto program,
      Replayed(kWinogradConv,
               "b0 = block(\"Y\")\nb1 = cache_read(b0, \"W\", \"global\")\n"
               "transform_layout(b1, \"r, s, i, o -> o / 2, r, s, i, o % 2\")\n"));
  ASSERT_EQ(program.kernels.size(), 2);
  EXPECT_EQ(program.node(program.kernels[0]).name, "prepack");
  const ir::Workload original = Parsed(kWinogradConv);
  Rng rng(1);
  const auto inputs = RandomInputs(original, Fill::kInteger, rng);
  EXPECT_EQ(*ir::Interpret(program, inputs), *ir::Interpret(original, inputs));
}

}  // namespace
}  // namespace hone::schedule

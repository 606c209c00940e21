#include "client/cli/tune/apply_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "common/schedule/replay.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kWorkload[] =
    "workload matmul\n"                                         // 1
    "input A: f32[32, 16]\n"                                    // 2
    "input B: f32[16, 24]\n"                                    // 3
    "output C[i: 32, j: 24] = sum(k: 16) A[i, k] * B[k, j]\n";  // 4

// Returns a trace file. Its first instruction is in line 8.
std::string Trace(const std::string& instructions) {
  return absl::StrCat(kWorkload, "# by hand\ntrace 1\n\n", instructions);
}

const std::string kDecided = Trace(
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "# rows\n"
    "x0, x1 = sample_perfect_tile(l0, parts=2) = [8, 4]\n"
    "l3, l4 = split(l0, x0, x1)\n"
    "parallel(l3)\n");
const std::string kOpen = Trace(
    "b0 = block(\"C\")\n"
    "l0, l1, l2 = loops(b0)\n"
    "x0, x1 = sample_perfect_tile(l0, parts=2)\n"
    "l3, l4 = split(l0, x0, x1)\n");

TEST(ApplyTrace, AppliesDecidedTrace) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto applied, ApplyTrace("mine.trace", kDecided, 0));
  EXPECT_THAT(applied.decisions, ElementsAre(8, 4));
  EXPECT_THAT(applied.lines, ElementsAre(8, 9, 11, 12, 13));
  EXPECT_THAT(applied.program.ToText(), HasSubstr("parallel i_0 in 8"));
  // The text parses as a schedule.
  HONE_ASSERT_OK_AND_ASSIGN(const auto again, ApplyTrace("again", applied.Text(), 1));
  EXPECT_EQ(again.program.StructuralDigest(), applied.program.StructuralDigest());
}

TEST(ApplyTrace, AStageMayBeNamedTrace) {
  const std::string text =
      "workload w\n"
      "input A: f32[4]\n"
      "trace [i: 4] = A[i] + 1.0\n"
      "output B[i: 4] = trace[i] * 2.0\n"
      "trace 1\n"
      "b0 = block(\"trace\")\n";
  HONE_ASSERT_OK_AND_ASSIGN(const auto applied, ApplyTrace("mine.trace", text, 0));
  EXPECT_THAT(applied.lines, ElementsAre(6));
  EXPECT_THAT(
      std::string(ApplyTrace("mine.trace", text + "b1 = block(\"C\")\n", 0).status().message()),
      StartsWith("mine.trace:7:1: instruction 2 (block): "));
}

TEST(ApplyTrace, EachStepShowsItsInstructionAndProgram) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto applied, ApplyTrace("mine.trace", kDecided, 0));
  HONE_ASSERT_OK_AND_ASSIGN(const auto steps, StepsOf(applied));
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_EQ(steps[0].line, 0);
  EXPECT_EQ(steps[0].program, ir::Program::FromWorkload(applied.workload).ToText());
  EXPECT_EQ(steps[3].line, 11);
  EXPECT_EQ(steps[3].instruction, "x0, x1 = sample_perfect_tile(l0, parts=2) = [8, 4]");
  EXPECT_EQ(steps[3].program, steps[2].program) << "a sampling does not change the program";
  EXPECT_THAT(steps[4].program, HasSubstr("for i_0 in 8"));
  EXPECT_EQ(steps[5].program, applied.program.ToText());
}

TEST(ApplyTrace, OpenDecisionsAreDrawnWithTheSeed) {
  std::set<std::vector<int64_t>> drawn;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto applied, ApplyTrace("mine.trace", kOpen, seed));
    ASSERT_EQ(applied.decisions.size(), 2u);
    EXPECT_EQ(applied.decisions[0] * applied.decisions[1], 32);
    EXPECT_EQ(ApplyTrace("mine.trace", kOpen, seed)->decisions, applied.decisions);
    EXPECT_THAT(applied.Text(), HasSubstr(") = ["));
    drawn.insert(applied.decisions);
  }
  EXPECT_GT(drawn.size(), 2u);
}

// Only the candidate 4 is legal, because the extent is 32 = 8 * 4.
TEST(ApplyTrace, RedrawsDecisionsThatAPrimitiveRejects) {
  const std::string text = Trace(
      "b0 = block(\"C\")\n"
      "l0, l1, l2 = loops(b0)\n"
      "x0 = sample_categorical(candidates=[5, 7, 4, 9])\n"
      "l3, l4 = split(l0, 8, x0)\n");
  for (uint64_t seed = 0; seed < 10; ++seed) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto applied, ApplyTrace("mine.trace", text, seed));
    EXPECT_GE(applied.decisions[0] * 8, 32);
  }
}

TEST(ApplyTrace, ErrorsBeginWithTheLocation) {
  GoldenOfTest golden;
  for (const std::string& text : {std::string(kWorkload), Trace("b0 = blok(\"C\")\n"),
                                  std::string("workload w\ninput A: f32[4\n"),
                                  std::string("workload w\ninput A: f32[4\ntrace 1\n"),
                                  Trace("b0 = block(\"D\")\n"), kDecided + "# more\nparallel(l2)\n",
                                  Trace("b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\n"
                                        "x0, x1 = sample_perfect_tile(l0, parts=2) = [5, 4]\n"),
                                  kOpen + "parallel(l2)\n"}) {
    golden.Add(ApplyTrace("mine.trace", text, 0).status().ToString());
  }
}

}  // namespace
}  // namespace hone::cli

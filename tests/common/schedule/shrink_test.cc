// A failure is reported as a minimal trace that `hone schedule` reads. The faults here are
// injected.

#include "tests/common/schedule/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "common/ir/interpreter.h"
#include "common/schedule/replay.h"
#include "tests/common/schedule/random_workload.h"
#include "tests/status.h"

namespace hone::schedule {
namespace {

// A faulty unroll that omits the last iteration of loops with more than two.
ir::Program WithWrongUnroll(ir::Program program) {
  for (ir::Node& node : program.nodes) {
    if (node.kind == ir::Node::Kind::kLoop && node.loop == ir::LoopKind::kUnrolled &&
        node.extent.value > 2) {
      node.extent = ir::ExtentTable::Constant(node.extent.value - 1);
    }
  }
  return program;
}

bool ComputesWrong(const RandomTrace& random) {
  Rng rng(random.seed, 2);
  const std::vector<ir::Values> inputs = SmallIntegerInputs(*random.workload, rng);
  const auto expected = ir::Interpret(*random.workload, inputs);
  const auto actual = ir::Interpret(WithWrongUnroll(random.program), inputs);
  return !expected.ok() || !actual.ok() || *expected != *actual;
}

// All failing seeds among the first ones shrink to the faulty instruction. A few also keep those
// that create its loop or block.
TEST(ShrinkTest, KeepsOnlyTheFaultyPrimitive) {
  int failures = 0, alone = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const RandomTrace random = MakeRandomTrace(seed, 24);
    if (!ComputesWrong(random)) continue;
    ++failures;
    const RandomTrace minimal = Shrink(random, ComputesWrong);
    const std::string text = Describe(minimal);
    EXPECT_TRUE(ComputesWrong(minimal)) << text;
    ASSERT_LE(minimal.steps.size(), 4u) << text;
    const std::string& wrong = minimal.steps.back().primitive;
    EXPECT_TRUE(wrong == "unroll" || wrong == "register_tile" || wrong == "loop_kind")
        << text;  // identifies the unroll
    alone += minimal.steps.size() == 1;
    // The loop has the fewest iterations that show the fault.
    int64_t iterations = 0;
    for (const ir::Node& node : minimal.program.nodes) {
      if (node.kind == ir::Node::Kind::kLoop && node.loop == ir::LoopKind::kUnrolled)
        iterations = std::max(iterations, node.extent.value);
    }
    EXPECT_LE(iterations, 32) << text;  // the minimum for some patterns
    EXPECT_GE(iterations, 3) << text;
  }
  EXPECT_GT(failures, 20);
  EXPECT_GT(alone, failures * 8 / 10) << "of " << failures;
}

// The text is a trace file that gives the failing program.
TEST(ShrinkTest, MinimalTraceRoundTrips) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const RandomTrace random = MakeRandomTrace(seed, 24);
    if (!ComputesWrong(random)) continue;
    const RandomTrace minimal = Shrink(random, ComputesWrong);
    const std::string text = Describe(minimal);
    const auto file = ParseTraceFile(text);
    ASSERT_THAT(file, IsOk()) << text;
    const auto program = Replay(std::make_shared<const ir::Workload>(file->workload),
                                file->parsed.trace, file->parsed.decisions);
    ASSERT_THAT(program, IsOk()) << text;
    EXPECT_EQ(program->StructuralDigest(), minimal.program.StructuralDigest()) << text;
  }
}

TEST(ShrinkTest, ExtentsAndFactorsBecomeSmall) {
  // Fails if C has a split with an inner factor of two or more.
  const RandomWorkload drawn{.pattern = 0, .extents = {8, 7, 6, 5, 3, 3}};
  RandomTrace random =
      TakeSteps(drawn.Parsed(), {{.primitive = "split",
                                  .block = "C",
                                  .loops = {0},
                                  .numbers = {2, 4},
                                  .sampling = "sample_perfect_tile"},
                                 {.primitive = "unroll", .block = "C", .loops = {2}},
                                 {.primitive = "parallel", .block = "C", .loops = {0}}});
  random.drawn = drawn;
  ASSERT_EQ(random.steps.size(), 3u);
  const RandomTrace minimal = Shrink(random, [](const RandomTrace& r) {
    for (const Step& step : r.steps) {
      if (step.primitive == "split" && step.numbers[1] >= 2) return true;
    }
    return false;
  });
  EXPECT_EQ(minimal.trace.ToText(minimal.decisions),
            "b0 = block(\"C\")\n"
            "l0, l1, l2 = loops(b0)\n"
            "l3, l4 = split(l0, 0, 2)\n");
  EXPECT_TRUE(absl::StrContains(minimal.workload->ToText(), "sum(k: 1)"))
      << minimal.workload->ToText();
  EXPECT_EQ(minimal.program.workload().tensors.back().shape[1], 1);
}

}  // namespace
}  // namespace hone::schedule

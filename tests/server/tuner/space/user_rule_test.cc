// A rule registered by a program takes part in every generation. The order matters: rules must be
// registered before the first spaces are made.

#include <gtest/gtest.h>

#include "common/target/target.h"
#include "server/tuner/space/generate.h"
#include "server/tuner/space/rule.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

// Also offers the first block with its last loop outermost and parallel.
std::vector<Sketch> ApplyLastLoopFirst(const RuleContext&, const Sketch& sketch, int nest) {
  if (nest != 0 || sketch.nests[0].state != Nest::State::kOpen) return {};
  Sketch turned = sketch;
  const auto loops = turned.trace.Add("loops", {turned.nests[0].block}, {}, 2);
  turned.trace.Add("reorder", {loops[1], loops[0]});
  turned.trace.Add("parallel", {loops[1]});
  turned.nests[0].state = Nest::State::kDone;
  turned.name.push_back("turned");
  return {sketch, turned};
}

// Also offers the first block with a loop that is parallel twice, which never replays.
std::vector<Sketch> ApplyBroken(const RuleContext&, const Sketch& sketch, int nest) {
  if (nest != 0 || sketch.nests[0].state != Nest::State::kOpen) return {};
  Sketch broken = sketch;
  const auto loops = broken.trace.Add("loops", {broken.nests[0].block}, {}, 2);
  broken.trace.Add("parallel", {loops[0]});
  broken.trace.Add("parallel", {loops[0]});
  broken.nests[0].state = Nest::State::kDone;
  return {sketch, broken};
}

constexpr Rule kRule = {"last_loop_first", ApplyLastLoopFirst, "a test's own"};

TEST(RegisterRule, RuleAppliesIfRegisteredBeforeTheFirstSpaces) {
  EXPECT_THAT(RegisterRule(kRule, "no_such_rule"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(RegisterRule({"pack", ApplyLastLoopFirst, ""}),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(RegisterRule({"", ApplyLastLoopFirst, ""}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(RegisterRule({"nothing", nullptr, ""}), StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_THAT(RegisterRule(kRule), IsOk());
  ASSERT_THAT(RegisterRule({"broken", ApplyBroken, "a test's own"}), IsOk());
  EXPECT_THAT(RegisterRule(kRule), StatusIs(absl::StatusCode::kAlreadyExists));

  const auto workload = MakeWorkload(
      "workload add\n"
      "input A: f32[7, 90]\n"
      "output C[i: 7, j: 90] = A[i, j] + 1.0\n");
  int dropped = 0;
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto spaces, GenerateDesignSpaces(workload, target::TargetByName("x86-avx512").value(),
                                              Generation{.dropped = &dropped}));
  ASSERT_EQ(spaces.size(), 2u);
  EXPECT_EQ(dropped, 1);
  EXPECT_EQ(spaces[0]->name(), "plain");
  EXPECT_EQ(spaces[1]->name(), "turned");
  const std::string text = spaces[1]->Replay({}).value().ToText();
  EXPECT_LT(text.find("parallel j"), text.find("for i")) << text;

  const absl::Status late = RegisterRule({"late", ApplyLastLoopFirst, ""});
  EXPECT_THAT(late, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_NE(late.message().find("late"), absl::string_view::npos);
}

}  // namespace
}  // namespace hone::space

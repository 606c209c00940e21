#include <gtest/gtest.h>

#include <algorithm>

#include "server/tuner/space/generate.h"
#include "server/tuner/space/tile_limits.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

// Indices: rows, vectors, k_unroll, vector tile (outer, inner), row tile, reduction tile.
TileDecisions Matmul() {
  return {.rows = 0, .vectors = 1, .k_unroll = 2, .vector = {3}, .row = {5}, .reduce = {7}};
}

bool Holds(const std::vector<Constraint>& constraints, absl::string_view name,
           std::vector<int64_t> decisions) {
  const auto found = std::find_if(constraints.begin(), constraints.end(),
                                  [&](const Constraint& c) { return c.name == name; });
  EXPECT_NE(found, constraints.end()) << name;
  return found->holds(absl::MakeSpan(decisions).first(found->decisions));
}

class TileConstraints : public testing::Test {
 protected:
  std::vector<Constraint> Make(bool row_first) {
    TileLimits limits;
    limits.cores = 4;
    limits.panel_bytes = 64 << 10;
    limits.block_bytes = 256 << 10;
    std::vector<Constraint> constraints;
    AddTileConstraints(limits, Matmul(), {.row_first = row_first, .lanes = 16}, constraints);
    return constraints;
  }
};

TEST_F(TileConstraints, LimitTheUnrolledBody) {
  EXPECT_TRUE(Holds(Make(true), "statements", {14, 2, 8, 1, 1, 1, 1, 1, 1}));
  EXPECT_FALSE(Holds(Make(true), "statements", {30, 4, 8, 1, 1, 1, 1, 1, 1}));
}

TEST(TileConstraintsOfWindows, LimitTheUnrolledWindowMoreWhereThereAreGuards) {
  for (const bool guarded : {false, true}) {
    TileDecisions decisions = Matmul();
    decisions.window_unroll = 7;
    decisions.reduce = {8};
    decisions.window_points = 9;
    decisions.guarded = guarded;
    std::vector<Constraint> constraints;
    AddTileConstraints(TileLimits{}, decisions, {.lanes = 16}, constraints);
    const auto holds = [&](int64_t k_unroll, int64_t window) {
      return Holds(constraints, "statements of the window",
                   {14, 2, k_unroll, 1, 1, 1, 1, window, 1, 1});
    };
    EXPECT_TRUE(holds(1, 3));
    EXPECT_EQ(holds(2, 3), !guarded);
    EXPECT_FALSE(holds(4, 3));
    EXPECT_TRUE(holds(8, 1));  // limited by the other constraint
  }
}

TEST_F(TileConstraints, NeedAnIterationPerCoreIfPossible) {
  EXPECT_TRUE(Holds(Make(true), "parallel", {8, 2, 1, 2, 9, 2, 9, 1, 1}));
  EXPECT_FALSE(Holds(Make(true), "parallel", {8, 2, 1, 3, 9, 1, 9, 1, 1}));
  EXPECT_TRUE(Holds(Make(true), "parallel", {8, 2, 1, 3, 1, 1, 1, 1, 1}));  // three in total
  EXPECT_FALSE(Holds(Make(true), "parallel", {8, 2, 1, 2, 2, 1, 1, 1, 1}));
}

// A panel of 40 · 4 bytes · 200 fits, and one of 40 · 4 bytes · 500 does not.
TEST_F(TileConstraints, TileTheReductionOnlyForReuseOrForSmallPanels) {
  EXPECT_TRUE(Holds(Make(true), "whole reduction", {8, 2, 4, 1, 1, 1, 1, 1, 50}));
  EXPECT_FALSE(Holds(Make(true), "whole reduction", {8, 2, 4, 1, 1, 1, 1, 2, 25}));
  EXPECT_TRUE(Holds(Make(true), "whole reduction", {8, 2, 4, 1, 1, 1, 2, 2, 25}));
  EXPECT_TRUE(Holds(Make(true), "whole reduction", {8, 2, 4, 1, 1, 1, 1, 5, 25}));
}

TEST_F(TileConstraints, KeepThePanelsSmall) {
  // (8 + 32) · 4 bytes · depth
  EXPECT_TRUE(Holds(Make(true), "panels", {8, 2, 4, 1, 1, 1, 1, 2, 100}));
  EXPECT_FALSE(Holds(Make(true), "panels", {8, 2, 4, 1, 1, 1, 1, 2, 110}));
}

TEST_F(TileConstraints, LimitTheDataThatIsReread) {
  // With the rows in the outer loop, 20 panels of 32 columns · depth 128 · 4 bytes = 320 KiB are
  // read again for each of the 2 row tiles.
  const std::vector<int64_t> wide = {8, 2, 1, 1, 20, 1, 2, 1, 128};
  EXPECT_FALSE(Holds(Make(true), "block", wide));
  EXPECT_TRUE(Holds(Make(false), "block", wide));  // only 8 KiB of rows are read again
  EXPECT_TRUE(Holds(Make(true), "block", {8, 2, 1, 1, 20, 2, 1, 1, 128}));  // read once
}

TEST(TileConstraintsOfSpaces, HoldForTheWholeMachine) {
  target::Target target = target::TargetByName("x86-avx512").value();
  target.cores = 64;
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto spaces,
      GenerateDesignSpaces(MakeWorkload("conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1"), target));
  for (const auto& space : spaces) {
    for (uint64_t i = 0; i < 20; ++i) {
      Rng rng(4, i);
      const ir::Program program = space->Replay(space->Sample(rng).value()).value();
      const ir::NodeId outer = program.LoopsAbove(program.FindBlock("Y"))[0];
      EXPECT_EQ(program.node(outer).loop, ir::LoopKind::kParallel);
      EXPECT_GE(program.node(outer).extent.value, 64) << program.ToText();
    }
  }
}

}  // namespace
}  // namespace hone::space

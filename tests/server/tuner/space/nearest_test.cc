// Transfers decisions from one shape to another.
#include <gtest/gtest.h>

#include <cmath>

#include "server/tuner/space/design_space.h"
#include "server/tuner/space/generate.h"
#include "server/tuner/space/transfer.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

using schedule::Site;
using Rows = std::vector<std::vector<int64_t>>;

TEST(NearestValues, PerfectTilesKeepTheirInnerFactors) {
  const Site site{.kind = Site::Kind::kPerfectTile, .count = 3, .extent = 96, .max_inner = 16};
  // The first part absorbs the change of the extent.
  EXPECT_EQ(NearestValues(site, {8, 4, 8})[0], (std::vector<int64_t>{3, 4, 8}));
  // 7 does not divide 96; 6 and 8 do, and 8 is closer by ratio.
  EXPECT_EQ(NearestValues(site, {8, 4, 7})[0], (std::vector<int64_t>{3, 4, 8}));
  // No part may be larger than the limit.
  EXPECT_EQ(NearestValues(site, {1, 1, 96})[0], (std::vector<int64_t>{6, 1, 16}));
  for (const auto& row : NearestValues(site, {8, 4, 8})) EXPECT_TRUE(site.IsLegal(row));
}

TEST(NearestValues, TilesThatNeedNotDivideKeepTheWantedSize) {
  const Site site{.kind = Site::Kind::kTile, .count = 2, .extent = 100};
  EXPECT_EQ(NearestValues(site, {9, 14})[0], (std::vector<int64_t>{8, 14}));
  // A size larger than the extent becomes the extent.
  EXPECT_EQ(NearestValues(site, {1, 400})[0], (std::vector<int64_t>{1, 100}));
  for (const auto& row : NearestValues(site, {9, 14})) EXPECT_TRUE(site.IsLegal(row));
}

TEST(NearestValues, ChoicesBeginWithTheSameRow) {
  const Site site{.count = 2, .rows = {1, 1, 4, 2, 14, 2, 14, 1}};
  EXPECT_EQ(NearestValues(site, {14, 2}), (Rows{{14, 2}, {14, 1}, {4, 2}, {1, 1}}));
  EXPECT_EQ(NearestValues(site, {12, 2})[0], (std::vector<int64_t>{14, 2}));
}

TEST(NearestValues, LongExtentsEnd) {
  const Site site{.kind = Site::Kind::kTile, .count = 4, .extent = int64_t{1} << 24};
  const Rows rows = NearestValues(site, {64, 64, 64, 64});
  EXPECT_EQ(rows[0], (std::vector<int64_t>{64, 64, 64, 64}));
}

std::vector<std::unique_ptr<DesignSpace>> Spaces(absl::string_view text) {
  return *GenerateDesignSpaces(MakeWorkload(text), *target::TargetByName("x86-avx512"));
}

// Spaces of one shape have counterparts for another shape, and their decisions can be replayed
// there.
TEST(Nearest, DecisionsOfAnotherShapeReplayAndMeetTheConstraints) {
  const auto from = Spaces("conv2d n=1 h=14 w=14 ci=64 co=96 k=3 s=1 p=1");
  const auto to = Spaces("conv2d n=1 h=28 w=28 ci=48 co=128 k=3 s=2 p=1");
  int carried = 0;
  for (const auto& source : from) {
    Rng rng(carried);
    const std::vector<int64_t> decisions = *source->Sample(rng);
    for (const auto& space : to) {
      if (StructureOf(space->trace()) != StructureOf(source->trace())) continue;
      HONE_ASSERT_OK_AND_ASSIGN(const auto nearest, space->Nearest(decisions));
      EXPECT_TRUE(space->IsLegal(nearest));
      EXPECT_THAT(space->Replay(nearest), IsOk());
      EXPECT_EQ(nearest, *space->Nearest(decisions));
      ++carried;
    }
  }
  EXPECT_GE(carried, static_cast<int>(from.size()) / 2);
}

TEST(Nearest, LegalDecisionsStayAsTheyAre) {
  for (const auto& space : Spaces("matmul m=96 n=128 k=64")) {
    Rng rng(1);
    const std::vector<int64_t> decisions = *space->Sample(rng);
    EXPECT_EQ(*space->Nearest(decisions), decisions) << space->name();
    EXPECT_EQ(space->Nearest({}).ok(), decisions.empty());
  }
}

TEST(WorkloadDistance, GrowsWithTheRatioOfExtents) {
  const auto distance = [](absl::string_view a, absl::string_view b) {
    return WorkloadDistance(*MakeWorkload(a), *MakeWorkload(b));
  };
  constexpr char kMatmul[] = "matmul m=64 n=64 k=64";
  EXPECT_EQ(distance(kMatmul, kMatmul), 0);
  const double near = distance(kMatmul, "matmul m=128 n=64 k=64");
  EXPECT_GT(near, 0);
  EXPECT_LT(near, distance(kMatmul, "matmul m=256 n=64 k=64"));
  EXPECT_EQ(near, distance("matmul m=128 n=64 k=64", kMatmul));
  // A convolution is a contraction of a different form. A softmax is not a contraction.
  EXPECT_GE(distance(kMatmul, "conv2d n=1 h=8 w=8 ci=8 co=16 k=3 p=1"), kOtherForm);
  EXPECT_TRUE(std::isinf(distance(kMatmul, "softmax m=64 n=64")));
  EXPECT_LT(distance("conv2d n=1 h=8 w=8 ci=8 co=16 k=3 p=1 s=2",
                     "conv2d n=1 h=8 w=8 ci=8 co=16 k=3 p=1"),
            kOtherForm);
}

TEST(TraceStructure, IgnoresNumbersAndNamesOnly) {
  const auto parse = [](absl::string_view text) { return schedule::ParseTrace(text)->trace; };
  const auto a = parse("b0 = block(\"C\")\nl0, l1 = loops(b0)\nl2, l3 = split(l0, 0, 4)\n");
  const auto b = parse("b0 = block(\"Y\")\nl0, l1 = loops(b0)\nl2, l3 = split(l0, 0, 8)\n");
  const auto c = parse("b0 = block(\"C\")\nl0, l1 = loops(b0)\nl2, l3 = split(l1, 0, 4)\n");
  EXPECT_EQ(StructureOf(a), StructureOf(b));
  EXPECT_NE(StructureOf(a), StructureOf(c));
  EXPECT_EQ(EqualInstructions(a, b), 1);
  EXPECT_EQ(EqualInstructions(a, a), 3);
}

}  // namespace
}  // namespace hone::space

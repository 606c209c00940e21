// Strategies find better candidates than random draws on a simulated machine whose constants the
// draft does not know, and on a landscape that it does not predict at all.
#include "tests/server/tuner/search/landscape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/server/tuner/search/other_machine.h"

namespace hone::search {
namespace {

using Candidates = std::vector<record::Candidate>;

constexpr int kSeeds = 4;

double RandomRegret(int candidates) {
  static std::map<int, double> known;
  if (!known.contains(candidates)) known[candidates] = MeanRegret("random", candidates, kSeeds);
  return known[candidates];
}

const Progress& OtherMachineAtRandom() {
  static const Progress progress = RunOnOtherMachine("random");
  return progress;
}

TEST(GridSearchTest, EnumeratesEverythingInOrder) {
  TestSpaces spaces(64);
  spaces.Add("two", R"(
b0 = block("C")
l0, l1, l2 = loops(b0)
x0 = sample_categorical(candidates=[1, 2, 4])
x1, x2 = sample_perfect_tile(l1, parts=2, max_inner=16)
l3, l4 = split(l0, 0, x0)
l5, l6 = split(l1, x1, x2)
)");
  spaces.Add("one", R"(
b0 = block("C")
l0, l1, l2 = loops(b0)
x0 = sample_categorical(candidates=[8, 16])
l3, l4 = split(l2, 0, x0)
)");
  const auto grid = *CreateSearchStrategy("grid", spaces.Context(1));
  std::vector<std::vector<int64_t>> first;
  size_t second = 0;
  for (uint64_t event = 0; event < 9; ++event) {
    const Candidates proposed = *grid->Propose(4, event, nullptr);
    for (const record::Candidate& candidate : proposed) {
      if (candidate.space_digest == spaces.spaces()[0]->digest()) {
        first.push_back(candidate.decisions);
      } else {
        ++second;
      }
    }
  }
  EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
  EXPECT_EQ(first.size(), 15u);
  EXPECT_EQ(second, 2u);
}

TEST(GeneticSearchTest, BeatsRandomDrawsOnceItBreeds) {
  EXPECT_LT(MeanRegret("genetic", 640, kSeeds), 0.8 * RandomRegret(640));
}

TEST(DropletSearchTest, DescendsFarBelowRandomDraws) {
  EXPECT_LT(MeanRegret("droplet", 160, kSeeds), 0.75 * RandomRegret(160));
}

TEST(AnnealingSearchTest, ProposesBetterOnceItHasLearnt) {
  EXPECT_LT(RunOnOtherMachine("annealing").late, 0.85 * OtherMachineAtRandom().late);
}

TEST(BayesianSearchTest, ProposesBetterOnceItHasLearnt) {
  EXPECT_LT(RunOnOtherMachine("bayesian").late, 0.85 * OtherMachineAtRandom().late);
}

TEST(BayesianSearchTest, LearnsWithoutADraft) {
  EXPECT_LT(MeanRegret("bayesian", 160, kSeeds), 0.7 * RandomRegret(160));
}

TEST(BayesianIndexSearchTest, ProposesBetterOnceItHasLearnt) {
  EXPECT_LT(RunOnOtherMachine("bayesian-index").late, 0.95 * OtherMachineAtRandom().late);
}

TEST(BayesianIndexSearchTest, ImprovesWithEveryAcquisition) {
  for (const char* variant : {"bayesian-index-ei", "bayesian-index-poi", "bayesian-index-reduced"})
    EXPECT_LT(RunOnOtherMachine(variant, /*seeds=*/1).late, 0.98 * OtherMachineAtRandom().late)
        << variant;
}

TEST(AnnealingSearchTest, ImprovesWithDiversityAndWithClusters) {
  EXPECT_LT(RunOnOtherMachine("annealing-diverse", /*seeds=*/1).late,
            0.9 * OtherMachineAtRandom().late);
  EXPECT_LT(RunOnOtherMachine("adaptive", /*seeds=*/1).late, 0.95 * OtherMachineAtRandom().late);
}

TEST(AnsorSearchTest, ProposesBetterOnceItHasLearnt) {
  EXPECT_LT(RunOnOtherMachine("ansor", /*seeds=*/1).late, 0.9 * OtherMachineAtRandom().late);
}

TEST(BeamSearchTest, BeginsAndEndsBelowRandomDraws) {
  const Progress beam = RunOnOtherMachine("beam", /*seeds=*/1);
  EXPECT_LT(beam.opening, 0.9 * OtherMachineAtRandom().opening)
      << "the draft values partial schedules";
  EXPECT_LT(beam.late, 0.92 * OtherMachineAtRandom().late);
}

// The draft knows nothing of the landscape, so only results can teach the value.
TEST(BeamSearchTest, LearnsTheValueOfPartialSchedules) {
  EXPECT_LT(MeanRegret("beam-learned", 320, kSeeds), 0.9 * RandomRegret(320));
}

TEST(QLearningSearchTest, WalksBelowRandomDraws) {
  EXPECT_LT(MeanRegret("q-learning", 320, kSeeds), 0.9 * RandomRegret(320));
}

TEST(PortfolioSearchTest, ProposesBetterOnceItHasLearnt) {
  EXPECT_LT(RunOnOtherMachine("portfolio").late, 0.85 * OtherMachineAtRandom().late);
}

TEST(PortfolioSearchTest, BeatsItsOpenerWhereTheDraftIsWrong) {
  EXPECT_LT(MeanRegret("portfolio", 160, kSeeds), 0.8 * MeanRegret("evolutionary", 160, kSeeds));
}

}  // namespace
}  // namespace hone::search

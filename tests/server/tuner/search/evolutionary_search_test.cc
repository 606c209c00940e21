// The evolutionary search on a simulated machine: the draft improves the first trials, and results
// improve the later ones.
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "common/base/rng.h"
#include "server/tuner/search/search_strategy.h"
#include "tests/server/tuner/search/other_machine.h"
#include "tests/server/tuner/search/spaces.h"

namespace hone::search {
namespace {

using Candidates = std::vector<record::Candidate>;

TEST(EvolutionarySearchTest, LearnsFromResults) {
  const Progress evolved = RunOnOtherMachine("evolutionary"), random = RunOnOtherMachine("random");
  EXPECT_LT(evolved.late, 0.75 * evolved.opening);
  EXPECT_LT(evolved.late, 0.85 * random.late);
}

TEST(EvolutionarySearchTest, MetropolisChainsLearn) {
  const Progress evolved = RunOnOtherMachine("evolutionary-metropolis");
  EXPECT_LT(evolved.late, 0.75 * evolved.opening);
}

TEST(EvolutionarySearchTest, TheDraftMakesTheFirstTrialsGood) {
  // The published form does not use the draft to choose the first candidates.
  for (const char* op : {"conv2d", "matmul"}) {
    const Progress published = RunOnOtherMachine("evolutionary", 1, op),
                   drafted = RunOnOtherMachine("evolutionary-drafted", 1, op);
    EXPECT_LT(drafted.opening, 0.8 * published.opening) << op;
    EXPECT_LT(drafted.best, 1.1) << op;
  }
}

TEST(EvolutionarySearchTest, UntriedSpacesLimitOthersToHalfABatch) {
  TestSpaces spaces = MatmulSpaces(512);
  const auto strategy = *CreateSearchStrategy("evolutionary-drafted", spaces.Context(3));
  // Results are known for one space only, all very fast; the other spaces are untried.
  Rng rng(5);
  std::vector<Measured> results;
  for (int i = 0; i < 8; ++i) {
    results.push_back({{spaces.spaces()[2]->digest(), *spaces.spaces()[2]->Sample(rng)},
                       record::Outcome::kOk,
                       1000.0 + i});
  }
  strategy->Tell(results);
  const Candidates batch = *strategy->Propose(16, 0, nullptr);
  std::map<std::string, int> counts;
  for (const record::Candidate& candidate : batch) ++counts[candidate.space_digest];
  EXPECT_EQ(batch.size(), 16u);
  EXPECT_EQ(counts.size(), spaces.spaces().size());
  for (const auto& [space, count] : counts) EXPECT_LE(count, 8);
}

// The first choice for a task of a network costs little; nothing else changes.
TEST(EvolutionarySearchTest, ASingleFirstChoiceMayComeFromASmallGeneration) {
  TestSpaces spaces = MatmulSpaces(512);
  const auto propose = [&](int population, int first_population, int n) {
    SearchContext context = spaces.Context(3);
    context.population = population;
    context.first_population = first_population;
    return *(*CreateSearchStrategy("evolutionary-drafted", std::move(context)))
                ->Propose(n, 0, nullptr);
  };
  EXPECT_EQ(propose(512, 64, 1), propose(64, 0, 1));
  EXPECT_EQ(propose(512, 64, 8), propose(512, 0, 8)) << "a batch needs a whole generation";
  // Once a result is known, a single choice is as good as ever.
  std::vector<Candidates> second;
  for (const int first_population : {0, 64}) {
    SearchContext context = spaces.Context(3);
    context.first_population = first_population;
    const auto strategy = *CreateSearchStrategy("evolutionary-drafted", std::move(context));
    Rng rng(5);
    const Measured told{{spaces.spaces()[2]->digest(), *spaces.spaces()[2]->Sample(rng)},
                        record::Outcome::kOk,
                        1000};
    strategy->Tell({&told, 1});
    second.push_back(*strategy->Propose(1, 0, nullptr));
  }
  EXPECT_EQ(second[0], second[1]);
}

}  // namespace
}  // namespace hone::search

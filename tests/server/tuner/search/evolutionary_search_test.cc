// The evolutionary search on a simulated machine: the draft improves the first trials, and results
// improve the later ones.
#include <gtest/gtest.h>

#include <map>

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

}  // namespace
}  // namespace hone::search

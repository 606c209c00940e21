// That the evolutionary search is worth its name: the draft makes the first trials good, results
// make the next ones better.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/base/rng.h"
#include "server/search/draft_score.h"
#include "server/search/search_strategy.h"
#include "tests/server/search/learning.h"
#include "tests/server/search/spaces.h"

namespace hone::search {
namespace {

using Candidates = std::vector<record::Candidate>;

TEST(EvolutionarySearchTest, FirstTrialBeatsTheBestOfManyRandomOnes) {
  const TestSpaces spaces = MatmulSpaces(512);
  const DraftMachine machine = DraftMachine::Of(spaces.Context(0).target);
  const auto draft = [&](const record::Candidate& c) {
    return DraftCycles(*spaces.SpaceOf(c).Replay(c.decisions), machine);
  };
  const auto evolutionary = *CreateSearchStrategy("evolutionary-drafted", spaces.Context(1));
  const auto random = *CreateSearchStrategy("random", spaces.Context(1));
  const Candidates first = *evolutionary->Propose(16, 0, nullptr);
  const Candidates drawn = *random->Propose(64, 0, nullptr);
  double best_drawn = draft(drawn[0]);
  for (const record::Candidate& candidate : drawn)
    best_drawn = std::min(best_drawn, draft(candidate));
  EXPECT_LE(draft(first[0]), best_drawn);
}

TEST(EvolutionarySearchTest, LearnsWhatTheDraftDoesNotKnow) {
  const TestSpaces spaces = MatmulSpaces(512);
  constexpr uint64_t kSeeds = 3;
  double gain = 1;  // some first batches are good by luck
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const std::vector<double> evolved = BestOf(spaces, "evolutionary-drafted", seed, 6);
    const std::vector<double> random = BestOf(spaces, "random", seed, 6);
    gain *= evolved.back() / evolved.front();
    EXPECT_LT(evolved.back(), 0.9 * random.back()) << "seed " << seed;
  }
  EXPECT_LT(std::pow(gain, 1.0 / kSeeds), 0.9);
}

TEST(EvolutionarySearchTest, ChainsLearnToo) {
  const TestSpaces spaces = MatmulSpaces(512);
  const std::vector<double> evolved = BestOf(spaces, "evolutionary-metropolis", 1, 6);
  EXPECT_LT(evolved.back(), 0.9 * evolved.front());
}

TEST(EvolutionarySearchTest, WithoutTheDraftTheFirstCandidatesAreThoseOfTheSeed) {
  const TestSpaces spaces = MatmulSpaces(512);
  const DraftMachine machine = DraftMachine::Of(spaces.Context(0).target);
  const auto mean_draft = [&](const char* name) {
    const Candidates batch =
        *(*CreateSearchStrategy(name, spaces.Context(1)))->Propose(16, 0, nullptr);
    double sum = 0;
    for (const record::Candidate& c : batch)
      sum += std::log(DraftCycles(*spaces.SpaceOf(c).Replay(c.decisions), machine));
    return sum / static_cast<double>(batch.size());
  };
  // As published: nothing of ours chooses them.
  EXPECT_GT(mean_draft("evolutionary"), mean_draft("evolutionary-drafted") + 0.5);
}

TEST(EvolutionarySearchTest, NoSpaceFillsMoreThanHalfOfABatchWhileOneIsUntried) {
  TestSpaces spaces = MatmulSpaces(512);
  const auto strategy = *CreateSearchStrategy("evolutionary-drafted", spaces.Context(3));
  // Told of one space only, very fast: the others are untried.
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

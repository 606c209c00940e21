// That the evolutionary search is worth its name: the draft makes the first trials good, results
// make the next ones better.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/base/rng.h"
#include "server/cost_model/cost_model.h"
#include "server/feature/feature_set.h"
#include "server/search/draft_score.h"
#include "server/search/search_strategy.h"
#include "tests/server/search/spaces.h"

namespace hone::search {
namespace {

using Candidates = std::vector<record::Candidate>;

// A device that the draft knows badly: the draft's time, times a factor per register tile and per
// tile of the reduction that the draft does not have, between 1 and 4.
class Device {
 public:
  explicit Device(const TestSpaces* spaces)
      : spaces_(spaces), machine_(DraftMachine::Of(spaces->Context(0).target)) {}

  double LatencyOf(const record::Candidate& candidate) const {
    const space::DesignSpace& space = spaces_->SpaceOf(candidate);
    double factor = 4;
    if (space.decision_count() == 9) {
      const auto& d = candidate.decisions;
      factor = 1 + std::abs(static_cast<double>(d[0] * d[1]) - 16) / 8 +
               std::abs(std::log2(static_cast<double>(d[6]) / 64)) / 3;
    }
    return DraftCycles(*space.Replay(candidate.decisions), machine_) * factor;
  }

 private:
  const TestSpaces* const spaces_;
  const DraftMachine machine_;
};

// The best latency after each of `rounds` of 16, with a model that learns from them.
std::vector<double> BestOf(const TestSpaces& spaces, const std::string& strategy_name,
                           uint64_t seed, int rounds) {
  const Device device(&spaces);
  const feature::FeatureSet& set = **feature::FindFeatureSet("statement");
  SearchContext context = spaces.Context(seed);
  context.population = 128;
  auto strategy = *CreateSearchStrategy(strategy_name, context);
  auto model = *cost_model::CreateCostModel("xgboost", {});
  cost_model::FeatureMatrix matrix{.columns = set.Columns()};
  std::vector<double> latencies, curve;
  for (int round = 0; round < rounds; ++round) {
    const Candidates candidates = *strategy->Propose(16, round, model.get());
    std::vector<Measured> results;
    for (const record::Candidate& candidate : candidates) {
      results.push_back({candidate, record::Outcome::kOk, device.LatencyOf(candidate)});
      latencies.push_back(results.back().latency_ns);
      std::vector<float> rows;
      int count = 0;
      EXPECT_TRUE(set.Extract(*spaces.SpaceOf(candidate).Replay(candidate.decisions),
                              context.target, rows, count)
                      .ok());
      matrix.Append(rows, count);
    }
    strategy->Tell(results);
    const double best = *std::min_element(latencies.begin(), latencies.end());
    std::vector<double> throughput;
    for (const double latency : latencies) throughput.push_back(best / latency);
    EXPECT_TRUE(model->Update(matrix, throughput).ok());
    curve.push_back(best);
  }
  return curve;
}

TEST(EvolutionarySearchTest, FirstTrialBeatsTheBestOfManyRandomOnes) {
  const TestSpaces spaces = MatmulSpaces(512);
  const DraftMachine machine = DraftMachine::Of(spaces.Context(0).target);
  const auto draft = [&](const record::Candidate& c) {
    return DraftCycles(*spaces.SpaceOf(c).Replay(c.decisions), machine);
  };
  const auto evolutionary = *CreateSearchStrategy("evolutionary", spaces.Context(1));
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
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const std::vector<double> evolved = BestOf(spaces, "evolutionary", seed, 6);
    const std::vector<double> random = BestOf(spaces, "random", seed, 6);
    EXPECT_LT(evolved.back(), 0.9 * evolved.front()) << "seed " << seed;
    EXPECT_LT(evolved.back(), 0.9 * random.back()) << "seed " << seed;
  }
}

TEST(EvolutionarySearchTest, NoSpaceFillsMoreThanHalfOfABatchWhileOneIsUntried) {
  TestSpaces spaces = MatmulSpaces(512);
  const auto strategy = *CreateSearchStrategy("evolutionary", spaces.Context(3));
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

#include "tests/server/search/learning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "server/cost_model/cost_model.h"
#include "server/feature/feature_set.h"
#include "server/search/draft_score.h"
#include "server/search/search_strategy.h"

namespace hone::search {
namespace {

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

}  // namespace

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
    const std::vector<record::Candidate> candidates = *strategy->Propose(16, round, model.get());
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

double AgainstRandom(const std::string& strategy_name, int seeds) {
  const TestSpaces spaces = MatmulSpaces(512);
  double sum = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    sum += std::log(BestOf(spaces, strategy_name, seed, 6).back() /
                    BestOf(spaces, "random", seed, 6).back());
  }
  return std::exp(sum / seeds);
}

}  // namespace hone::search

#include "tests/server/tuner/search/recorded.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/research/lab/measured_set.h"
#include "tests/status.h"

namespace hone::search {
namespace {

constexpr int kRounds = 6, kBatch = 16, kFirstLateRound = 4;

}  // namespace

Progress RunRecorded(const std::string& strategy_name, int seeds, const std::string& set_name) {
  const lab::MeasuredSet set(set_name);
  const feature::FeatureSet& features = **feature::FindFeatureSet("statement");
  double opening = 0, late = 0, best = 0, openings = 0, lates = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    auto strategy = *CreateSearchStrategy(strategy_name, set.Context(seed));
    auto model = *cost_model::CreateCostModel("xgboost", {});
    cost_model::FeatureMatrix matrix;
    std::vector<double> latencies;  // 0 for failed candidates
    double best_ns = 1e30;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Measured> results;
      const auto proposed = *strategy->Propose(kBatch, round, model.get());
      for (const record::Candidate& candidate : proposed) {
        const Measured result = results.emplace_back(set.Measure(candidate));
        set.AppendRows(features, candidate, matrix);
        latencies.push_back(result.latency_ns);
        if (result.outcome != record::Outcome::kOk) continue;
        best_ns = std::min(best_ns, result.latency_ns);
        const double above = std::log(result.latency_ns / set.best_ns());
        if (round == 0) opening += above, ++openings;
        if (round >= kFirstLateRound) late += above, ++lates;
      }
      strategy->Tell(results);
      std::vector<double> throughput;
      for (const double latency : latencies)
        throughput.push_back(latency > 0 ? best_ns / latency : 0);
      EXPECT_THAT(model->Update(matrix, throughput), IsOk());
    }
    best += std::log(best_ns / set.best_ns()) / seeds;
  }
  return {std::exp(opening / openings), std::exp(late / lates), std::exp(best)};
}

}  // namespace hone::search

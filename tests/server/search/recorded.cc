#include "tests/server/search/recorded.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "server/lab/run.h"
#include "server/lab/set_folder.h"

namespace hone::search {
namespace {

constexpr size_t kOpening = 16, kLate = 64, kTrials = 96;

}  // namespace

Progress RunRecorded(const std::string& strategy, int seeds, const std::string& set) {
  const auto bench = *lab::Bench::Open(*lab::LoadRecordedSet("tests/bench/recorded", set));
  double opening = 0, late = 0, best = 0, openings = 0, lates = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const auto run = lab::RunSearch(*bench, {.strategy = strategy,
                                             .cost_model = "xgboost",
                                             .seed = static_cast<uint64_t>(seed),
                                             .trials = kTrials,
                                             .stop_at_best = false});
    EXPECT_TRUE(run.ok()) << run.status();
    if (!run.ok()) return {};
    double least = 1e30;
    for (size_t i = 0; i < run->trials.size(); ++i) {
      const lab::RunTrial& trial = run->trials[i];
      if (trial.outcome != record::Outcome::kOk) continue;
      const double above = std::log(trial.latency_ns / bench->best_latency_ns());
      least = std::min(least, above);
      if (i < kOpening) opening += above, ++openings;
      if (i >= kLate) late += above, ++lates;
    }
    best += least / seeds;
  }
  return {std::exp(opening / openings), std::exp(late / lates), std::exp(best)};
}

}  // namespace hone::search

#include "server/research/lab/statistics.h"

#include "common/base/median.h"
#include "gtest/gtest.h"

namespace hone::lab {
namespace {

TEST(StatisticsTest, MedianAndGeometricMean) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(Median({7}), 7);
  EXPECT_NEAR(GeometricMean({1, 4, 16}), 4, 1e-12);
}

double Ratio(const std::vector<SeedValues>& drawn) { return MedianRatio(drawn[0], drawn[1]); }

TEST(BootstrapTest, IntervalContainsTheValueDeterministically) {
  const SeedValues half = {{10, 11, 9, 10, 10}, {20, 22, 18, 21, 19}};
  const SeedValues whole = {{20, 19, 21, 20, 22}, {41, 39, 40, 38, 42}};
  const Interval ratio = Bootstrap({half, whole}, Ratio);
  EXPECT_NEAR(ratio.value, 0.5, 1e-9);
  EXPECT_LE(ratio.low, ratio.value);
  EXPECT_GE(ratio.high, ratio.value);
  EXPECT_GT(ratio.low, 0.4);
  EXPECT_LT(ratio.high, 0.6);
  const Interval again = Bootstrap({half, whole}, Ratio);
  EXPECT_EQ(ratio.low, again.low);
  EXPECT_EQ(ratio.high, again.high);
}

TEST(BootstrapTest, NoSpreadGivesNoInterval) {
  const Interval ratio = Bootstrap({{{2, 2, 2}}, {{4, 4, 4}}}, Ratio);
  EXPECT_EQ(ratio.low, 0.5);
  EXPECT_EQ(ratio.high, 0.5);
}

TEST(BootstrapTest, MoreSpreadGivesAWiderInterval) {
  const SeedValues one = {{4, 4, 4, 4, 4}};
  const Interval narrow = Bootstrap({{{9, 10, 11, 10, 10}}, one}, Ratio);
  const Interval wide = Bootstrap({{{2, 10, 30, 5, 20}}, one}, Ratio);
  EXPECT_LT(narrow.high - narrow.low, wide.high - wide.low);
}

RunResult RunOf(const std::vector<double>& latencies) {
  RunResult run;
  for (const double latency : latencies) {
    run.trials.push_back({.outcome = latency > 0 ? record::Outcome::kOk : record::Outcome::kCrash,
                          .latency_ns = latency,
                          .build_ms = 20,
                          .run_ms = 5,
                          .brain_ms = 1000});
  }
  return run;
}

TEST(MetricsTest, TrialsAndSecondsToAShare) {
  const RunResult run = RunOf({0, 200, 400, 110, 100, 101});
  EXPECT_EQ(TrialsTo(run, 100, 0.5), 2);
  EXPECT_EQ(TrialsTo(run, 100, 0.9), 4);
  EXPECT_EQ(TrialsTo(run, 100, 0.99), 5);
  EXPECT_EQ(TrialsTo(run, 99, 1.0), -1);
  EXPECT_NEAR(SecondsTo(run, 100, 2, 0.9, /*brain=*/false), 4 * 0.015, 1e-12);
  EXPECT_NEAR(SecondsTo(run, 100, 2, 0.9, /*brain=*/true), 4 * 1.015, 1e-12);
  EXPECT_EQ(SecondsTo(run, 99, 2, 1.0, false), -1);
}

TEST(MetricsTest, FinishedRunKeepsItsShare) {
  const RunResult run = RunOf({200, 100});
  EXPECT_EQ(ShareAt(run, 100, 1), 0.5);
  EXPECT_EQ(ShareAt(run, 100, 50), 1.0);
  EXPECT_EQ(Area(run, 100, 2), 0.75);
  EXPECT_EQ(Area(run, 100, 4), 0.875);
  EXPECT_EQ(Area(RunResult(), 100, 4), 0);
}

}  // namespace
}  // namespace hone::lab

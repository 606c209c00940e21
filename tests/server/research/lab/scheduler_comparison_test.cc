#include "server/research/lab/scheduler_comparison.h"

#include <numeric>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/research/lab/small_set.h"
#include "tests/status.h"

namespace hone::lab {
namespace {

using ::testing::HasSubstr;

// Two tasks; the second one is a hundred times as slow.
Benches TwoBenches() {
  Benches benches;
  for (const std::string name : {"quick", "slow"}) {
    RecordedSet set = SmallSet();
    set.name = name;
    for (Measurement& measurement : set.measurements) {
      if (name == "slow") measurement.latency_ns *= 100;
    }
    auto bench = Bench::Open(std::move(set));
    EXPECT_THAT(bench, IsOk());
    benches[name] = *std::move(bench);
  }
  return benches;
}

SchedulerComparison Small() {
  return {.schedulers = {"round-robin", "gradient", "expected-gain"},
          .sets = {"quick", "slow"},
          .seeds = 2,
          .trials = 64,
          .batch = 4,
          .strategy = "genetic",
          .cost_model = "random"};
}

TEST(SchedulerComparisonTest, EveryTrialGoesToATaskAndTheLatencyFalls) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto results, CompareSchedulers(Small(), TwoBenches(), 2));
  ASSERT_EQ(results.runs.size(), 3u);
  for (const auto& runs : results.runs) {
    ASSERT_EQ(runs.size(), 2u);
    for (const NetworkRun& run : runs) {
      EXPECT_EQ(run.points.size(), 64u);
      EXPECT_EQ(std::accumulate(run.task_trials.begin(), run.task_trials.end(), int64_t{0}), 64);
      double last = 0;
      for (const NetworkPoint& point : run.points) {
        EXPECT_TRUE(last == 0 || point.latency_ns <= last) << point.latency_ns;
        last = point.latency_ns;
      }
      EXPECT_GE(run.latency_ns(), run.best_latency_ns);
      EXPECT_EQ(run.TrialsTo(0.5 * run.best_latency_ns), -1);
      EXPECT_GT(run.TrialsTo(run.latency_ns()), 0);
    }
  }
  for (const NetworkRun& run : results.runs[0]) EXPECT_EQ(run.task_trials[0], run.task_trials[1]);
  // Nearly all of the latency is that of the slow task.
  for (const NetworkRun& run : results.runs[2]) EXPECT_GT(run.task_trials[1], run.task_trials[0]);
}

TEST(SchedulerComparisonTest, TheSameArgumentsGiveTheSameText) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto one, CompareSchedulers(Small(), TwoBenches(), 1));
  HONE_ASSERT_OK_AND_ASSIGN(const auto two, CompareSchedulers(Small(), TwoBenches(), 2));
  EXPECT_EQ(SchedulerText(one), SchedulerText(two));
  EXPECT_EQ(SchedulerCurvesCsv(one), SchedulerCurvesCsv(two));
  EXPECT_THAT(SchedulerText(one), HasSubstr("| expected-gain |"));
}

TEST(SchedulerComparisonTest, RefusesWhatCannotBeCompared) {
  const Benches benches = TwoBenches();
  SchedulerComparison comparison = Small();
  comparison.trials = 4;  // the second task gets none
  EXPECT_THAT(std::string(CompareSchedulers(comparison, benches, 1).status().message()),
              HasSubstr("4 trials do not measure every set"));
  comparison = Small();
  comparison.schedulers = {"random"};
  EXPECT_THAT(CompareSchedulers(comparison, benches, 1), StatusIs(absl::StatusCode::kNotFound));
  comparison.schedulers.clear();
  EXPECT_THAT(CompareSchedulers(comparison, benches, 1),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hone::lab

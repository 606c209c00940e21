#include <cmath>

#include "gtest/gtest.h"
#include "server/job/scheduler/task_scheduler.h"

namespace hone::job {
namespace {

TEST(ImprovementTest, WithoutObservationsThePriorHolds) {
  const std::vector<TaskProgress> tasks = {
      {.latency_ns = 100, .curve = {{8, 100}}, .trials = 8, .granted = 8}};
  const Improvement model(tasks);
  EXPECT_DOUBLE_EQ(model.Rate(tasks[0]), 0.1);
  EXPECT_DOUBLE_EQ(model.ExpectedLatency(tasks[0], 8), 100);
  EXPECT_NEAR(model.ExpectedLatency(tasks[0], 16), 100 * std::pow(2, -0.1), 1e-9);
}

TEST(ImprovementTest, TheRateIsTheWeightedMeanOfObservations) {
  // Halved by the doubling of the trials from 8 to 16, and not changed by the next one.
  const std::vector<TaskProgress> tasks = {
      {.latency_ns = 50, .curve = {{8, 100}, {16, 50}, {32, 50}}, .trials = 32, .granted = 32}};
  const double ln2 = std::log(2);
  const double improvement = 0.5 * ln2;     // of weight 16 / 32
  const double exposure = 0.5 * ln2 + ln2;  // of weights 16 / 32 and 32 / 32
  const double prior = (0.1 + improvement) / (1 + exposure);
  EXPECT_NEAR(Improvement(tasks).Rate(tasks[0]), (0.5 * prior + improvement) / (0.5 + exposure),
              1e-12);
}

TEST(ImprovementTest, EarlierTrialsSlowTheExpectedGain) {
  TaskProgress task{.latency_ns = 100, .trials = 8, .granted = 8};
  const std::vector<TaskProgress> fresh = {task};
  task.earlier_trials = 100;
  const std::vector<TaskProgress> known = {task};
  EXPECT_GT(Improvement(known).ExpectedLatency(known[0], 16),
            Improvement(fresh).ExpectedLatency(fresh[0], 16));
}

TEST(ImprovementTest, ATaskCannotBecomeFasterThanTheDevice) {
  const std::vector<TaskProgress> tasks = {
      {.flops = 1000, .latency_ns = 10, .trials = 8, .granted = 8},    // 100 operations per ns
      {.flops = 1000, .latency_ns = 100, .trials = 8, .granted = 8}};  // 10 operations per ns
  const Improvement model(tasks);
  EXPECT_NEAR(model.ExpectedLatency(tasks[0], 16), 8 + 2 * std::pow(2, -0.1), 1e-9);
  EXPECT_NEAR(model.ExpectedLatency(tasks[1], 16), 8 + 92 * std::pow(2, -0.1), 1e-9);
}

}  // namespace
}  // namespace hone::job

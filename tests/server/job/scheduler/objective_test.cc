#include <cmath>

#include "gtest/gtest.h"
#include "server/job/scheduler/task_scheduler.h"
#include "tests/status.h"

namespace hone::job {
namespace {

// Two networks: the first has task 0 twice and task 1 once, the second has task 1 three times.
std::vector<TaskProgress> TwoNetworks() {
  return {{.weights = {2}, .latency_ns = 100}, {.weights = {1, 3}, .latency_ns = 50}};
}

double CostOf(const Objective& objective, const std::vector<TaskProgress>& tasks) {
  return objective.Cost(tasks, BestLatencies(tasks));
}

TEST(ObjectiveTest, LatencyIsTheWeightedSum) {
  const std::vector<TaskProgress> tasks = TwoNetworks();
  EXPECT_EQ(NetworkLatencies(tasks, BestLatencies(tasks)), (std::vector<double>{250, 150}));
  const Objective objective;
  EXPECT_DOUBLE_EQ(CostOf(objective, tasks), 400);
  EXPECT_NEAR(objective.Slope(tasks, 0), 2, 1e-6);
  EXPECT_NEAR(objective.Slope(tasks, 1), 4, 1e-6);
}

TEST(ObjectiveTest, ANetworkBelowItsLimitGainsNothing) {
  const std::vector<TaskProgress> tasks = TwoNetworks();
  const Objective objective{.kind = ObjectiveKind::kLatencyLimits, .limits_ns = {200, 160}};
  EXPECT_DOUBLE_EQ(CostOf(objective, tasks), 250 + 160);
  EXPECT_NEAR(objective.Slope(tasks, 0), 2, 1e-6);
  EXPECT_NEAR(objective.Slope(tasks, 1), 1, 1e-6) << "only the first network is above its limit";
}

TEST(ObjectiveTest, SpeedupIsTheGeometricMeanAgainstReferences) {
  const std::vector<TaskProgress> tasks = TwoNetworks();
  const Objective objective{.kind = ObjectiveKind::kSpeedup, .references_ns = {500, 1200}};
  EXPECT_NEAR(CostOf(objective, tasks), -4, 1e-12) << "the square root of 2 * 8";
  // d/dg of -(B1 B2 / (x1 x2))^(1/2) is cost * (-1/2) * (w1/x1 + w2/x2).
  EXPECT_NEAR(objective.Slope(tasks, 0), 4 * 0.5 * (2.0 / 250), 1e-5);
  EXPECT_NEAR(objective.Slope(tasks, 1), 4 * 0.5 * (1.0 / 250 + 3.0 / 150), 1e-5);
}

TEST(ObjectiveTest, NetworksOfASpeedupHaveWeights) {
  const std::vector<TaskProgress> tasks = {{.weights = {1}, .latency_ns = 100},
                                           {.weights = {0, 1}, .latency_ns = 400}};
  const Objective objective{
      .kind = ObjectiveKind::kSpeedup, .references_ns = {1, 1}, .network_weights = {3, 1}};
  EXPECT_NEAR(CostOf(objective, tasks), -std::pow(1e-2 * 1e-2 * 1e-2 * 2.5e-3, 0.25), 1e-12);
  EXPECT_NEAR(objective.Slope(tasks, 0) / objective.Slope(tasks, 1), 3 * 400.0 / 100, 1e-2);
}

// Two tasks of two networks that fall alike: the one of the network with more weight comes first.
TEST(ObjectiveTest, WeightsDecideWhichTaskGetsTrials) {
  const auto next = [](const std::vector<double>& weights) {
    std::vector<TaskProgress> tasks = {{.weights = {1, 0}}, {.weights = {0, 1}}};
    for (TaskProgress& task : tasks) {
      task.latency_ns = 100;
      task.curve = {{8, 150}, {16, 100}};
      task.trials = task.granted = 16;
      task.seconds = 1;
    }
    const auto scheduler =
        CreateTaskScheduler(kDefaultTaskScheduler, {.objective = {.kind = ObjectiveKind::kSpeedup,
                                                                  .references_ns = {1, 1},
                                                                  .network_weights = weights}});
    EXPECT_THAT(scheduler, IsOk());
    return scheduler.ok() ? (*scheduler)->Next(tasks).value_or(-1) : -1;
  };
  EXPECT_EQ(next({}), 0) << "the first of equals";
  EXPECT_EQ(next({3, 1}), 0);
  EXPECT_EQ(next({1, 3}), 1);
}

TEST(ObjectiveTest, AStalledTaskCannotLowerEarlyStop) {
  std::vector<TaskProgress> tasks = TwoNetworks();
  tasks[0].curve = {{8, 120}, {16, 100}, {24, 100}, {32, 100}};
  tasks[0].trials = 32;
  tasks[1].curve = {{8, 60}, {16, 50}};
  tasks[1].trials = 16;
  const Objective objective{.kind = ObjectiveKind::kEarlyStop, .early_stop = 16};
  EXPECT_DOUBLE_EQ(CostOf(objective, tasks), 400);
  EXPECT_EQ(objective.Slope(tasks, 0), 0);
  EXPECT_NEAR(objective.Slope(tasks, 1), 4, 1e-6);
  const Objective patient{.kind = ObjectiveKind::kEarlyStop, .early_stop = 17};
  EXPECT_NEAR(patient.Slope(tasks, 0), 2, 1e-6);
}

TEST(ObjectiveTest, NamesAreRead) {
  EXPECT_EQ(ObjectiveFromName("latency").value(), ObjectiveKind::kLatency);
  EXPECT_EQ(ObjectiveFromName("latency-limits").value(), ObjectiveKind::kLatencyLimits);
  EXPECT_EQ(ObjectiveFromName("speedup").value(), ObjectiveKind::kSpeedup);
  EXPECT_EQ(ObjectiveFromName("early-stop").value(), ObjectiveKind::kEarlyStop);
  EXPECT_THAT(ObjectiveFromName("speed"), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hone::job

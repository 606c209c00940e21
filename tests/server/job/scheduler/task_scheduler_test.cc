#include "server/job/scheduler/task_scheduler.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::ElementsAre;

std::unique_ptr<TaskScheduler> Make(absl::string_view name, SchedulerOptions options = {}) {
  auto scheduler = CreateTaskScheduler(name, std::move(options));
  EXPECT_THAT(scheduler, IsOk());
  return *std::move(scheduler);
}

// A task after a number of batches of 8 with these best latencies.
TaskProgress After(const std::vector<double>& latencies, double weight = 1, double seconds = 1) {
  TaskProgress task{.weights = {weight}, .op = "matmul", .flops = 1000};
  for (const double latency : latencies) {
    task.trials += 8;
    task.curve.push_back({task.trials, latency});
  }
  task.latency_ns = latencies.back();
  task.granted = task.trials;
  task.seconds = seconds * static_cast<double>(task.trials);
  return task;
}

class EverySchedulerTest : public ::testing::TestWithParam<std::string> {};

TEST_P(EverySchedulerTest, BeginsWithOneBatchOfEveryTask) {
  const auto scheduler = Make(GetParam());
  std::vector<TaskProgress> tasks(3, {.weights = {1}});
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) {
    order.push_back(scheduler->Next(tasks).value());
    tasks[order.back()].granted += 8;
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2));
  EXPECT_EQ(scheduler->Next(tasks), std::nullopt) << "nothing is known before the first results";
}

// The time may not suffice for all of them.
TEST_P(EverySchedulerTest, BeginsWithTheTasksThatAreExpectedToTakeMostTime) {
  const auto scheduler = Make(GetParam());
  std::vector<TaskProgress> tasks = {{.weights = {1}, .expected_ns = 30},
                                     {.weights = {8}, .expected_ns = 10},
                                     {.weights = {1, 1}, .expected_ns = 20}};
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) {
    order.push_back(scheduler->Next(tasks).value());
    ++tasks[order.back()].granted;
  }
  EXPECT_THAT(order, ElementsAre(1, 2, 0));
}

TEST_P(EverySchedulerTest, AFirstBatchWithoutAnyResultIsRepeated) {
  const auto scheduler = Make(GetParam());
  std::vector<TaskProgress> tasks = {After({100}), {.weights = {1}, .trials = 8, .granted = 8}};
  EXPECT_EQ(scheduler->Next(tasks), 1);
}

TEST_P(EverySchedulerTest, ClosedTasksGetNothing) {
  const auto scheduler = Make(GetParam());
  std::vector<TaskProgress> tasks = {After({100, 50}), After({100})};
  tasks[0].open = false;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(scheduler->Next(tasks), 1);
    tasks[1].granted += 8;
  }
  tasks[1].open = false;
  EXPECT_EQ(scheduler->Next(tasks), std::nullopt);
}

TEST_P(EverySchedulerTest, EndsWhenEveryLimitIsMet) {
  const auto scheduler =
      Make(GetParam(), {.objective = {.kind = ObjectiveKind::kLatencyLimits, .limits_ns = {300}}});
  EXPECT_EQ(scheduler->Next(std::vector<TaskProgress>{After({100}), After({100})}), std::nullopt);
}

TEST_P(EverySchedulerTest, TheChoiceIsAFunctionOfTheProgress) {
  std::vector<TaskProgress> tasks = {After({100, 70}), After({100, 60}), After({90})};
  for (int i = 0; i < 50; ++i) {
    const std::optional<int> choice = Make(GetParam(), {.seed = 3})->Next(tasks);
    EXPECT_EQ(Make(GetParam(), {.seed = 3})->Next(tasks), choice);
    tasks[*choice].granted += 8;
  }
}

INSTANTIATE_TEST_SUITE_P(Schedulers, EverySchedulerTest, ::testing::ValuesIn(TaskSchedulerNames()),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(TaskSchedulerTest, NamesAreKnown) {
  EXPECT_THAT(TaskSchedulerNames(), ElementsAre("expected-gain", "gradient", "round-robin"));
  EXPECT_THAT(CreateTaskScheduler("greedy", {}), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(CreateTaskScheduler(kDefaultTaskScheduler, {}), IsOk());
}

TEST(RoundRobinTest, TheTaskWithTheFewestTrialsIsNext) {
  const auto scheduler = Make("round-robin");
  EXPECT_EQ(scheduler->Next(std::vector<TaskProgress>{After({9, 8}), After({9}), After({9})}), 1);
}

// A seed whose draw for the progress of these tests is not random.
constexpr uint64_t kNotDrawn = 1;

// The gradients, computed by hand from the formula in task_scheduler.h, with batches of 8.
TEST(GradientTest, ForwardBoundIsTheShareOfABatch) {
  // One batch each, no similar task and no window: -0.8 * w * g / 1.
  std::vector<TaskProgress> tasks = {After({100}, 2), After({150}, 1)};
  tasks[1].op = "conv2d";
  EXPECT_EQ(Make("gradient", {.seed = kNotDrawn})->Next(tasks), 0) << "-160 before -120";
  // With two batches, the first has -0.8 * 2 * 100 / 2 = -80.
  tasks[0] = After({100, 100}, 2);
  EXPECT_EQ(Make("gradient", {.seed = kNotDrawn})->Next(tasks), 1) << "-120 before -80";
}

TEST(GradientTest, BackwardWindowIsThreeBatches) {
  // Task 0: 0.2 * (100 - 400) / 3 - 0.8 * 100 / 5 = -20 - 16 = -36 (the first batch is too old).
  // Task 1: 0.2 * 0 - 0.8 * 215 / 5 = -34.4.
  std::vector<TaskProgress> tasks = {After({9000, 400, 300, 200, 100}),
                                     After({215, 215, 215, 215, 215})};
  tasks[1].op = "conv2d";
  EXPECT_EQ(Make("gradient", {.seed = kNotDrawn})->Next(tasks), 0);
  // With 230, task 1 has -36.8.
  tasks[1] = After({230, 230, 230, 230, 230});
  tasks[1].op = "conv2d";
  EXPECT_EQ(Make("gradient", {.seed = kNotDrawn})->Next(tasks), 1);
}

TEST(GradientTest, ASimilarTaskBoundsTheNextLatency) {
  // Both have 1000 operations. Task 1 reaches 10 a nanosecond, so task 0 is expected to reach
  // 2 * 1000 / 10 = 200 instead of 1000 - 1000 / 5 = 800: -0.8 * 800 = -640.
  // Task 2 has -0.8 * 3000 / 5 = -480.
  std::vector<TaskProgress> tasks = {After({1000, 1000, 1000, 1000, 1000}),
                                     After({100, 100, 100, 100, 100}),
                                     After({3000, 3000, 3000, 3000, 3000})};
  tasks[2].op = "conv2d";
  EXPECT_EQ(Make("gradient", {.seed = kNotDrawn})->Next(tasks), 0);
  // Of another size, they are not similar: -0.8 * 1000 / 5 = -160.
  tasks[1].flops = 100000;
  EXPECT_EQ(Make("gradient", {.seed = kNotDrawn})->Next(tasks), 2);
}

TEST(GradientTest, OneChoiceInTwentyIsDrawn) {
  std::vector<TaskProgress> tasks = {After({1000, 500}), After({1})};
  int drawn = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    drawn += Make("gradient", {.seed = seed})->Next(tasks) == 1 ? 1 : 0;
  }
  EXPECT_NEAR(drawn, 2000 * 0.05 / 2, 20);
}

TEST(ExpectedGainTest, TheGainIsWeighted) {
  const auto scheduler = Make("expected-gain");
  const std::vector<double> falling = {100, 90, 80};
  EXPECT_EQ(scheduler->Next(std::vector<TaskProgress>{After(falling, 1), After(falling, 5)}), 1);
  std::vector<TaskProgress> tasks = {After({100, 99, 98}), After({100, 60, 30})};
  EXPECT_EQ(scheduler->Next(tasks), 0) << "the second one is three times as fast";
  for (TaskProgress& task : tasks) task.flops = 0;
  EXPECT_EQ(scheduler->Next(tasks), 1) << "more is to be gained where more was gained";
  EXPECT_EQ(scheduler->Next(std::vector<TaskProgress>{After(falling, 1, /*seconds=*/1),
                                                      After(falling, 1, /*seconds=*/0.1)}),
            1)
      << "the gain is per second";
}

TEST(ExpectedGainTest, BatchesInFlightLowerTheGain) {
  const auto scheduler = Make("expected-gain");
  std::vector<TaskProgress> tasks = {After({100, 90}), After({95, 85})};
  ASSERT_EQ(scheduler->Next(tasks), 0);
  tasks[0].granted += 8;
  EXPECT_EQ(scheduler->Next(tasks), 1);
}

}  // namespace
}  // namespace hone::job

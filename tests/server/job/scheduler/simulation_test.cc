// Schedulers on made-up tasks, whose best latency is a function of their trials.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "gtest/gtest.h"
#include "server/job/scheduler/task_scheduler.h"

namespace hone::job {
namespace {

constexpr int64_t kBatch = 8;

// A search that approaches `floor` with the power `power` of its trials, in steps.
struct MadeUpTask {
  double weight = 1;
  double first = 100;
  double floor = 50;
  double power = 0.5;
  double seconds = 1;  // per trial

  double LatencyAfter(int64_t trials) const {
    const double batches = std::floor(static_cast<double>(trials) / kBatch);
    return floor + (first - floor) * std::pow(std::max(1.0, batches), -power);
  }
};

// A network with a few heavy layers that can gain much and many that cannot.
std::vector<MadeUpTask> Network(uint64_t seed) {
  Rng rng(seed);
  std::vector<MadeUpTask> tasks;
  for (int i = 0; i < 20; ++i) {
    MadeUpTask task;
    task.weight = 1 + static_cast<double>(rng.Below(6));
    task.first = 1e5 * std::pow(10, 1.5 * rng.Uniform());
    task.floor = task.first * (i % 4 == 0 ? 0.3 : 0.7 + 0.25 * rng.Uniform());
    task.power = 0.3 + 0.7 * rng.Uniform();
    tasks.push_back(task);
  }
  return tasks;
}

struct Simulation {
  std::vector<TaskProgress> tasks;
  std::vector<std::pair<int64_t, double>> latencies;  // of the network by trials
};

Simulation Simulate(const std::string& name, const std::vector<MadeUpTask>& made_up, int64_t trials,
                    uint64_t seed = 0) {
  const auto scheduler = *CreateTaskScheduler(name, {.batch = kBatch, .seed = seed});
  Simulation run;
  for (size_t i = 0; i < made_up.size(); ++i) {
    run.tasks.push_back({.weights = {made_up[i].weight},
                         .op = "conv2d",
                         .flops = std::pow(2.0, static_cast<double>(i))});
  }
  for (int64_t used = 0; used < trials; used += kBatch) {
    const int i = scheduler->Next(run.tasks).value();
    TaskProgress& task = run.tasks[i];
    task.granted = task.trials += kBatch;
    task.seconds += made_up[i].seconds * kBatch;
    task.latency_ns = made_up[i].LatencyAfter(task.trials);
    task.curve.push_back({task.trials, task.latency_ns});
    run.latencies.emplace_back(used + kBatch,
                               Objective().Cost(run.tasks, BestLatencies(run.tasks)));
  }
  return run;
}

TEST(SimulationTest, TheTaskThatCanGainMoreGetsMoreTrials) {
  const std::vector<MadeUpTask> tasks = {{.floor = 99}, {.first = 400, .floor = 20}, {.floor = 99}};
  for (const char* name : {"gradient", "expected-gain"}) {
    const Simulation run = Simulate(name, tasks, 480);
    EXPECT_GT(run.tasks[1].trials, run.tasks[0].trials) << name;
    EXPECT_GT(run.tasks[1].trials, run.tasks[2].trials) << name;
  }
}

TEST(SimulationTest, TheHeavyTaskGetsMoreTrials) {
  const std::vector<MadeUpTask> tasks = {{.weight = 1}, {.weight = 20}, {.weight = 1}};
  for (const char* name : {"gradient", "expected-gain"}) {
    const Simulation run = Simulate(name, tasks, 480);
    EXPECT_GT(run.tasks[1].trials, 240) << name;
  }
}

TEST(SimulationTest, TheQuickTaskGetsMoreTrialsOnlyFromExpectedGain) {
  const std::vector<MadeUpTask> tasks = {{.seconds = 1}, {.seconds = 0.05}};
  EXPECT_GT(Simulate("expected-gain", tasks, 480).tasks[1].trials, 300);
  EXPECT_LT(Simulate("round-robin", tasks, 480).tasks[1].trials, 300);
}

TEST(SimulationTest, ExpectedGainNeedsFewerTrialsThanRoundRobin) {
  constexpr int64_t kTrials = 1600;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const std::vector<MadeUpTask> network = Network(seed);
    const double reached = Simulate("round-robin", network, kTrials).latencies.back().second;
    int64_t needed = kTrials;
    for (const auto& [trials, latency] : Simulate("expected-gain", network, kTrials).latencies) {
      if (latency <= reached) {
        needed = trials;
        break;
      }
    }
    EXPECT_LE(needed, kTrials * 7 / 10) << "seed " << seed;
  }
}

}  // namespace
}  // namespace hone::job

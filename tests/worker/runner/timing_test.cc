#include "worker/runner/timing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "absl/algorithm/container.h"
#include "common/base/rng.h"
#include "worker/runner/peak.h"

namespace hone::runner {
namespace {

// A machine with given times instead of a clock.
class FakeMachine : public Probe {
 public:
  double Sample() override {
    ++probes;
    for (const double end = NowNs() + probe_ns; NowNs() < end;) {
    }
    return next_drift < drifts.size() ? drifts[next_drift++] : 1.0;
  }
  double Drift() const override { return drift; }
  std::vector<double> WaitedNs() const override { return waited_ns; }
  double ProcessorNs() const override { return processor_ns; }
  double Run(int64_t count) {
    runs += count;
    calls.push_back(count);
    const double factor = next_slow < slow.size() ? slow[next_slow++] : 1.0;
    const double ns = run_ns * static_cast<double>(count) * factor;
    for (double& each : waited_ns) each += idle_wait_ns;
    if (slow_is_preempted) waited_ns[0] += ns * (1 - 1 / factor);
    total_ns += ns;
    processor_ns += slow_waits ? run_ns * static_cast<double>(count) : ns;
    return ns;
  }
  Timing Time(double first_ns, const TimingOptions& options) {
    return TimeKernel(first_ns, [this](int64_t count) { return Run(count); }, *this, options);
  }

  double run_ns = 1e6;
  double probe_ns = 0;         // that a sample takes on the clock
  std::vector<double> slow;    // factors of the first runs
  std::vector<double> drifts;  // the first samples of the probe
  double drift = 1;            // relative to the registration
  bool slow_is_preempted = false;
  bool slow_waits = false;  // for a core
  double idle_wait_ns = 0;  // of each thread in a block
  std::vector<double> waited_ns = {0};
  double processor_ns = 0;
  size_t next_slow = 0;
  size_t next_drift = 0;
  int64_t runs = 0;
  int probes = 0;
  double total_ns = 0;
  std::vector<int64_t> calls;
};

TEST(TimingTest, ScreeningAKernelOfAMillisecondTakesFewRuns) {
  FakeMachine machine;
  const Timing timing = machine.Time(1.3e6, {});
  EXPECT_DOUBLE_EQ(timing.latency_ns, 1e6);
  EXPECT_EQ(timing.dispersion, 0);
  EXPECT_FALSE(timing.stopped_early);
  EXPECT_GE(timing.samples_ns.size(), 3u);
  EXPECT_LE(machine.total_ns, 6e6);
}

TEST(TimingTest, ScreeningAKernelOfTenMillisecondsTakesFewRuns) {
  FakeMachine machine;
  machine.run_ns = 10e6;
  const Timing timing = machine.Time(10.5e6, {});
  EXPECT_DOUBLE_EQ(timing.latency_ns, 10e6);
  EXPECT_LE(machine.total_ns, 40e6);
}

TEST(TimingTest, AShortKernelIsTimedInBlocksOfAMillisecond) {
  FakeMachine machine;
  machine.run_ns = 2000;
  const Timing timing = machine.Time(50e3, {});  // a cold first run
  EXPECT_DOUBLE_EQ(timing.latency_ns, 2000);
  EXPECT_EQ(machine.calls.back(), 500);
  EXPECT_LE(machine.total_ns, 6e6);
}

TEST(TimingTest, AHopelessKernelCostsOneRun) {
  FakeMachine machine;
  machine.run_ns = 30e6;
  const Timing timing = machine.Time(30e6, {.best_latency_ns = 10e6});
  EXPECT_TRUE(timing.stopped_early);
  EXPECT_DOUBLE_EQ(timing.latency_ns, 30e6);
  EXPECT_EQ(machine.runs, 0);  // the checking run was enough
  EXPECT_EQ(machine.probes, 0);
}

TEST(TimingTest, ColdFirstRunDoesNotRejectAShortKernel) {
  FakeMachine machine;
  machine.run_ns = 10e3;
  const Timing timing = machine.Time(100e3, {.best_latency_ns = 10e3});
  EXPECT_FALSE(timing.stopped_early);
  EXPECT_DOUBLE_EQ(timing.latency_ns, 10e3);
}

TEST(TimingTest, ColdFirstRunDoesNotRejectAMillisecondKernel) {
  FakeMachine machine;
  machine.run_ns = 1.4e6;
  const Timing timing = machine.Time(3.5e6, {.best_latency_ns = 1.3e6});
  EXPECT_FALSE(timing.stopped_early);
  EXPECT_DOUBLE_EQ(timing.latency_ns, 1.4e6);
}

TEST(TimingTest, AHopelessKernelOfMillisecondsStopsAfterItsWarmRuns) {
  FakeMachine machine;
  machine.run_ns = 5e6;
  const Timing timing = machine.Time(6e6, {.best_latency_ns = 1.3e6});
  EXPECT_TRUE(timing.stopped_early);
  EXPECT_DOUBLE_EQ(timing.latency_ns, 5e6);
  EXPECT_LE(machine.runs, 2);
  machine.runs = 0;
  EXPECT_TRUE(machine.Time(9e6, {.best_latency_ns = 1.3e6}).stopped_early);
  EXPECT_EQ(machine.runs, 0);  // the first run is slow enough to stop
}

TEST(TimingTest, ABlockThatShowsAClearlySlowerKernelIsEnough) {
  FakeMachine machine;
  const Timing timing = machine.Time(1e6, {.best_latency_ns = 0.6e6});
  EXPECT_TRUE(timing.stopped_early);
  EXPECT_EQ(timing.samples_ns.size(), 1u);
}

TEST(TimingTest, DisturbedBlocksAreMeasuredAgain) {
  FakeMachine machine;
  machine.slow = {1, 3, 3};              // a warm run, then two disturbed blocks
  machine.drifts = {1, 2, 1.5, 1.0, 1};  // before, after block 1, after block 2, …
  const Timing timing = machine.Time(1e6, {});
  EXPECT_DOUBLE_EQ(timing.latency_ns, 1e6);
  for (const double sample : timing.samples_ns) EXPECT_DOUBLE_EQ(sample, 1e6);
}

TEST(TimingTest, BlocksThatOtherProcessesInterruptAreMeasuredAgain) {
  for (const bool confirm : {false, true}) {
    FakeMachine machine;
    machine.slow = {1};  // a warm run
    // Two blocks of three are interrupted, and the probe does not show it.
    for (int i = 0; i < 30; ++i) machine.slow.insert(machine.slow.end(), {4, 3, 1});
    machine.slow_is_preempted = true;
    const Timing timing = machine.Time(1e6, {.confirm = confirm});
    EXPECT_DOUBLE_EQ(timing.latency_ns, 1e6);
    EXPECT_EQ(timing.dispersion, 0);
    EXPECT_GT(timing.remeasured, 0);
  }
}

// A thread that has slept is not preempted when it waits for a core that another process uses.
TEST(TimingTest, ABlockInWhichNoThreadHadACoreIsRepeated) {
  FakeMachine machine;
  machine.slow = {1};
  for (int i = 0; i < 30; ++i) machine.slow.insert(machine.slow.end(), {4, 3, 1});
  machine.slow_waits = true;
  const Timing timing = machine.Time(1e6, {.confirm = true});
  EXPECT_DOUBLE_EQ(timing.latency_ns, 1e6);
  EXPECT_GT(timing.remeasured, 0);
}

TEST(TimingTest, InterruptedFirstRunDoesNotRejectAKernel) {
  FakeMachine machine;
  machine.slow = {40, 50, 40};
  machine.slow_is_preempted = true;
  machine.run_ns = 1e5;
  const Timing timing = machine.Time(4e6, {.best_latency_ns = 1e5, .first_waited_ns = 3.9e6});
  EXPECT_FALSE(timing.stopped_early);
  EXPECT_DOUBLE_EQ(timing.latency_ns, 1e5);
}

TEST(TimingTest, TheFastestBlocksCountIfAllAreInterrupted) {
  FakeMachine machine;
  machine.slow = {1};
  for (int i = 0; i < 100; ++i) machine.slow.insert(machine.slow.end(), {5, 4, 1.1});
  machine.slow_is_preempted = true;
  const Timing timing = machine.Time(1e6, {});
  EXPECT_DOUBLE_EQ(timing.latency_ns, 1.1e6);
  EXPECT_LE(machine.total_ns, 70e6);
}

// Daemons, and threads of Hone that wait for the timing lock, take a core for some microseconds.
TEST(TimingTest, ShortInterruptionsDisturbNoBlock) {
  for (const double run_ns : {1e5, 1e6, 200e6}) {
    FakeMachine machine;
    machine.run_ns = run_ns;
    machine.slow.assign(100, 1.02);
    machine.slow_is_preempted = true;
    EXPECT_EQ(machine.Time(1.02 * run_ns, {.confirm = true}).remeasured, 0);
  }
}

// A kernel waits for the slowest of its threads, not for all of them in turn.
TEST(TimingTest, ShortWaitsOfManyThreadsDisturbNoBlock) {
  FakeMachine machine;
  machine.waited_ns.assign(64, 0);
  machine.idle_wait_ns = 5000;
  EXPECT_EQ(machine.Time(1e6, {}).remeasured, 0);
  machine.idle_wait_ns = 50'000;
  EXPECT_GT(machine.Time(1e6, {}).remeasured, 0);
}

TEST(TimingTest, SlowPhaseDoesNotRejectAKernel) {
  FakeMachine machine;
  machine.drift = 2.5;
  const Timing timing = machine.Time(1e6, {.best_latency_ns = 0.45e6});
  EXPECT_FALSE(timing.stopped_early);
  EXPECT_DOUBLE_EQ(timing.drift, 2.5);
  EXPECT_DOUBLE_EQ(timing.latency_ns, 1e6);  // as measured, without correction
}

TEST(TimingTest, AlwaysDisturbedMachineStillGivesAResult) {
  FakeMachine machine;
  machine.drifts.assign(1000, 2.0);
  const Timing timing = machine.Time(1e6, {});
  EXPECT_DOUBLE_EQ(timing.latency_ns, 1e6);
  EXPECT_LE(machine.total_ns, 60e6);  // the time of repetitions is limited
}

TEST(TimingTest, ConfirmationTakesManyBlocks) {
  for (const double run_ns : {2000.0, 1e6, 30e6}) {
    FakeMachine machine;
    machine.run_ns = run_ns;
    const Timing timing = machine.Time(run_ns, {.confirm = true, .best_latency_ns = run_ns / 100});
    EXPECT_FALSE(timing.stopped_early);
    EXPECT_GE(timing.samples_ns.size(), run_ns > 5e6 ? 5u : 10u);
    EXPECT_GE(machine.total_ns, 29e6);
  }
}

TEST(TimingTest, ABriefConfirmationTakesFewBlocks) {
  for (const double run_ns : {2000.0, 1e6, 30e6}) {
    FakeMachine machine;
    machine.run_ns = run_ns;
    const Timing timing = machine.Time(run_ns, {.confirm = true, .min_blocks = 3});
    EXPECT_FALSE(timing.stopped_early);
    EXPECT_EQ(timing.samples_ns.size(), run_ns > 5e6 ? 4u : 5u)
        << "the first run counts if it is long";
  }
  FakeMachine disturbed;
  disturbed.drifts.assign(100'000, 2.0);
  disturbed.Time(1e6, {.confirm = true, .min_blocks = 3});
  EXPECT_LT(disturbed.total_ns, 100e6);
}

// The host takes away 2 % of the time of each of two processors, 10 ms at a time, and a kernel
// waits for its slower thread. That must not look like a disturbed machine (WhyOutOfPolicy).
TEST(TimingTest, ALittleStealDisturbsNoConfirmation) {
  Rng rng(1, 1);
  for (const int min_blocks : {0, 3}) {
    int disturbed = 0;
    for (int process = 0; process < 200; ++process) {
      FakeMachine machine;
      constexpr double kBlockMs = 1.2, kChunkMs = 10, kSteal = 0.02;
      for (int run = 0; run < 200; ++run) {
        const bool is_stolen = rng.Uniform() < 2 * kBlockMs * kSteal / kChunkMs;
        machine.slow.push_back(is_stolen ? 1 + kChunkMs : 1);
      }
      const Timing timing = machine.Time(1e6, {.confirm = true, .min_blocks = min_blocks});
      const double fastest = *absl::c_min_element(timing.samples_ns);
      disturbed += timing.dispersion > 0.5 || timing.latency_ns > 2 * fastest;
      if (timing.dispersion <= 0.5) {
        EXPECT_DOUBLE_EQ(timing.latency_ns, 1e6);
      }
    }
    EXPECT_LE(disturbed, 1) << min_blocks;
  }
}

TEST(TimingTest, BlocksCanBeLimited) {
  FakeMachine machine;
  machine.run_ns = 10;
  machine.Time(10, {.max_count = 4});
  for (const int64_t count : machine.calls) EXPECT_LE(count, 4);
}

TEST(TimingTest, DisturbedBlocksAreCounted) {
  FakeMachine machine;
  EXPECT_EQ(machine.Time(1e6, {.confirm = true}).remeasured, 0);
  FakeMachine disturbed;
  disturbed.drifts = {1, 1, 3, 1, 1};  // two blocks are disturbed
  EXPECT_EQ(disturbed.Time(1e6, {.confirm = true}).remeasured, 2);
}

// On an emulated CPU, a sample of the probe takes longer than a block. Its time counts.
TEST(TimingTest, ASlowProbeEndsTheSearchForUndisturbedBlocks) {
  FakeMachine machine;
  machine.drifts.assign(100'000, 2.0);
  const int usual = machine.Time(1e6, {}).remeasured;
  machine.probe_ns = 20e6;
  machine.next_drift = 0;
  const int slow = machine.Time(1e6, {}).remeasured;
  EXPECT_GE(usual, 40);
  EXPECT_LE(slow, 3);
}

TEST(TimingTest, APolicyMayAskForMoreBlocks) {
  FakeMachine machine;
  machine.run_ns = 20e6;
  EXPECT_EQ(machine.Time(20e6, {.confirm = true, .min_blocks = 25}).samples_ns.size(), 26u)
      << "25 blocks and the first run";
}

TEST(TimingTest, ShortBlocksAreRepeatedALimitedNumberOfTimes) {
  for (const bool confirm : {false, true}) {
    FakeMachine machine;
    machine.run_ns = 10;
    machine.drifts.assign(100'000, 2.0);
    machine.Time(10, {.confirm = confirm, .max_count = 4});
    EXPECT_LE(machine.probes, 300);
  }
}

}  // namespace
}  // namespace hone::runner

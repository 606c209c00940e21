#include "client/cli/network/network_timing.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"

namespace hone::cli {
namespace {

TEST(WasInterruptedTest, EveryThreadMayBeInterruptedAFewTimesASecond) {
  EXPECT_FALSE(WasInterrupted(25, /*threads=*/2, /*run_ns=*/1e9));
  EXPECT_TRUE(WasInterrupted(100, 2, 1e9));
  EXPECT_FALSE(WasInterrupted(100, 32, 1e9));
}

NetworkTiming Timing(double latency_ns, double fastest_ns) {
  return {.speed = {.threads = 2, .latency_ns = latency_ns},
          .fastest_ns = fastest_ns,
          .windows = 1,
          .others_cores = 0};
}

TEST(WhyDisturbedTest, ADisturbedMeasurementIsNoBaseline) {
  GoldenOfTest golden;
  EXPECT_EQ(WhyDisturbed(Timing(24e3, 20e3), 20e3), "");
  golden.Add(WhyDisturbed(Timing(26e3, 20e3), 20e3));
  // Other work that never stops disturbs all runs alike.
  golden.Add(WhyDisturbed(Timing(20e6, 19e6), 20e3));
  EXPECT_EQ(WhyDisturbed(Timing(20e6, 19e6), 0), "") << "the latency of a kernel is not known";
  NetworkTiming one_thread = Timing(20e6, 19e6);
  one_thread.speed.threads = 1;
  one_thread.target_cores = 64;
  EXPECT_EQ(WhyDisturbed(one_thread, 20e3), "") << "the kernels had more threads";
  NetworkTiming gpu = Timing(20e6, 19e6);
  gpu.speed.threads = 0;
  EXPECT_EQ(WhyDisturbed(gpu, 20e3), "") << "the inputs were copied to the GPU";
  NetworkTiming interrupted = Timing(31e6, 30e6);
  interrupted.interrupted = 1;
  golden.Add(WhyDisturbed(interrupted, 20e6));
  interrupted.windows = interrupted.interrupted = 3;
  golden.Add(WhyDisturbed(interrupted, 20e6));
  interrupted.interrupted = 1;
  EXPECT_EQ(WhyDisturbed(interrupted, 20e6), "") << "the other runs count";
}

TEST(WhyDisturbedTest, OtherProgramsMayUseCoresThatTheNetworkDoesNotNeed) {
  NetworkTiming timing = Timing(20e3, 20e3);
  timing.speed.threads = 2;
  timing.machine_cores = 2;
  timing.others_cores = 0.1;
  EXPECT_EQ(WhyDisturbed(timing, 0), "");
  timing.others_cores = 0.7;
  EXPECT_EQ(WhyDisturbed(timing, 0), "other programs used 0.7 of the 2 cores of this machine");
  timing.machine_cores = 64;
  timing.others_cores = 20;
  EXPECT_EQ(WhyDisturbed(timing, 0), "");
  timing.others_cores = 58;
  EXPECT_NE(WhyDisturbed(timing, 0), "");
  EXPECT_EQ(TimingJson(timing, "")["others_cores"], 58);
  timing.others_cores = std::nullopt;
  EXPECT_EQ(WhyDisturbed(timing, 0), "") << "not known";
  EXPECT_EQ(TimingJson(timing, "")["others_cores"], 0);
}

TEST(AddWindowTest, InterruptedRunsCountOnlyWithoutOthers) {
  NetworkTiming timing{.others_cores = 0};
  const auto add = [&](std::vector<double> runs, bool interrupted) {
    const double step = runs[0];
    AddWindow({.runs_ns = std::move(runs), .steps = {{"s", "k", step}}, .interrupted = interrupted},
              timing);
  };
  add({50, 30, 40}, true);
  EXPECT_EQ(timing.speed.latency_ns, 40);
  add({30, 31, 32}, true);
  EXPECT_EQ(timing.speed.latency_ns, 31);
  EXPECT_NE(WhyDisturbed(timing, 0), "");
  add({35, 35, 36}, false);
  EXPECT_EQ(timing.speed.latency_ns, 35) << "an undisturbed one replaces them";
  EXPECT_EQ(WhyDisturbed(timing, 0), "");
  add({20, 20, 20}, true);
  add({34, 34, 99}, false);
  add({37, 37, 37}, false);
  EXPECT_EQ(timing.speed.latency_ns, 34);
  EXPECT_EQ(timing.speed.steps[0].latency_ns, 34);
  EXPECT_EQ(timing.fastest_ns, 20);
  EXPECT_EQ(timing.windows, 6);
  EXPECT_EQ(timing.interrupted, 3);
}

TEST(DisturbanceTextTest, SaysWhatItMeansForTheUser) {
  EXPECT_EQ(DisturbanceText("it was slow"),
            "other work disturbed this measurement, so the network may be faster: it was slow");
}

TEST(TimingJsonTest, SaysWhetherOtherWorkDisturbedIt) {
  NetworkTiming timing = Timing(26e3, 20e3);
  EXPECT_EQ(TimingJson(timing, "")["is_disturbed"], false);
  timing.windows = 4;
  timing.interrupted = 1;
  const Json json = TimingJson(timing, "it was slow");
  EXPECT_EQ(json["is_disturbed"], true);
  EXPECT_EQ(json["disturbance"], "it was slow");
  EXPECT_EQ(json["interrupted_share"], 0.25);
}

}  // namespace
}  // namespace hone::cli

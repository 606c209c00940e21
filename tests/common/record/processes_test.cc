#include "common/record/processes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::record {
namespace {

using ::testing::ElementsAre;

MeasureResult Process(double latency_ns, double drift) {
  MeasureResult result;
  result.latency_ns = latency_ns;
  result.samples_ns = {latency_ns};
  result.reference_drift = drift;
  return result;
}

TEST(ProcessesTest, SteadyLatencyIsTheMedianOfTheSteadyLatencies) {
  // The steady latencies are 100, 110 and 90. The ratio of the medians would be 150.
  const MeasureResult combined =
      MedianOfProcesses({Process(100, 1), Process(220, 2), Process(180, 2)});
  EXPECT_DOUBLE_EQ(SteadyLatencyNs(combined), 100);
  EXPECT_THAT(combined.samples_ns, ElementsAre(100, 220, 180));
}

TEST(ProcessesTest, UnknownDriftIsNoDrift) {
  EXPECT_DOUBLE_EQ(SteadyLatencyNs(MedianOfProcesses({Process(100, 0), Process(120, 0)})), 110);
}

TEST(ProcessesTest, CombinedResultSaysHowManyProcessesItHas) {
  EXPECT_EQ(ProcessesOf(Process(100, 1)), 1);
  EXPECT_EQ(ProcessesOf(MedianOfProcesses({Process(100, 1), Process(120, 1)})), 2);
}

// Other work delayed most samples.
TEST(ProcessesTest, FasterHalfOfTheSamplesGivesTheLatency) {
  MeasureResult result = Process(600, 0.5);
  result.samples_ns = {1000, 12, 600, 10, 14, 900};
  const MeasureResult faster = WithFasterHalf(result);
  EXPECT_THAT(faster.samples_ns, ElementsAre(10, 12, 14));
  EXPECT_NEAR(faster.latency_ns, 600 * 12 / 307.0, 1e-9) << "scaled as the samples are";
  EXPECT_DOUBLE_EQ(faster.reference_drift, 0.5);
  EXPECT_DOUBLE_EQ(WithFasterHalf(Process(100, 1)).latency_ns, 100) << "one sample";
}

}  // namespace
}  // namespace hone::record

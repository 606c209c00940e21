#include "client/cli/network_check.h"

#include "client/cli/network_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

TEST(DisturbanceOfRunsTest, ComparesWithTheSumOfTheKernels) {
  EXPECT_EQ(DisturbanceOfRuns(25e3, 20e3), "");
  EXPECT_EQ(DisturbanceOfRuns(20e6, 20e3), "took 1000 times as long as its kernels");
  EXPECT_EQ(DisturbanceOfRuns(20e6, 0), "") << "the latency of a kernel is not known";
}

TEST(WhyNoBaselineTest, ADisturbedMeasurementIsNoBaseline) {
  EXPECT_EQ(WhyNoBaseline({.latency_ns = 25e3}, 20e3, 20e3), "");
  EXPECT_THAT(WhyNoBaseline({.latency_ns = 25e3}, 10e3, 20e3), HasSubstr("fastest run took 10"));
  // Other work that never stops disturbs all runs alike.
  EXPECT_THAT(WhyNoBaseline({.latency_ns = 20e6}, 19e6, 20e3),
              HasSubstr("the network took 1000 times as long as its kernels"));
}

}  // namespace
}  // namespace hone::cli

#include <cstdint>

#include "client/cli/network/network_timing.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

// A run with two steps.
void AddRun(RepeatedRuns& runs, int64_t ns) {
  runs.Add(static_cast<double>(ns), {{"conv", "conv2d", ns - 1}, {"relu", "relu", 1}});
}

TEST(RepeatedRunsTest, TheStepsAreThoseOfTheMedianRun) {
  RepeatedRuns runs;
  for (const int64_t ns : {900, 100, 300, 200, 250}) AddRun(runs, ns);
  EXPECT_EQ(runs.At(0), 100);
  EXPECT_EQ(runs.At(0.5), 250);
  EXPECT_EQ(runs.At(1), 900);
  EXPECT_EQ(runs.SumNs(), 1750);
  ASSERT_EQ(runs.MedianSteps().size(), 2u);
  EXPECT_EQ(runs.MedianSteps()[0].ns + runs.MedianSteps()[1].ns, 250);
  AddRun(runs, 150);
  EXPECT_EQ(runs.MedianSteps()[0].ns + 1, runs.At(0.5)) << "one of two in the middle";
}

TEST(RepeatedRunsTest, ManyRunsNeedLittleMemory) {
  RepeatedRuns runs;
  const auto most = static_cast<int64_t>(RepeatedRuns::kMostSteps);
  for (int64_t i = 0; i < most; ++i) AddRun(runs, 100 + i % 7);
  for (int64_t i = 0; i < 9 * most; ++i) AddRun(runs, 200);
  EXPECT_EQ(runs.At(0.5), 200);
  EXPECT_EQ(runs.MedianSteps()[0].ns, 105) << "the nearest of those whose steps are kept";
}

}  // namespace
}  // namespace hone::cli

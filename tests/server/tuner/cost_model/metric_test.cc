// The metrics on examples small enough to compute by hand.

#include "server/tuner/cost_model/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace hone::cost_model {
namespace {

// Four candidates. The model ranks them c, a, d, b; the device ranks them a, c, b, d.
const std::vector<double> kScore = {0.8, 0.1, 0.9, 0.3};
const std::vector<double> kThroughput = {1.0, 0.4, 0.5, 0.2};

TEST(TopKTest, IsFastestLatencyOverPickedLatency) {
  // The latencies are 100, 250, 200, 500. The first pick takes 200; the better of the first two
  // takes 100.
  const std::vector<RankedTask> one = {{.score = kScore, .latency_ns = {100, 250, 200, 500}}};
  EXPECT_DOUBLE_EQ(TopK(one, 1), 100.0 / 200);
  EXPECT_DOUBLE_EQ(TopK(one, 2), 1.0);
  EXPECT_DOUBLE_EQ(TopK(one, 5), 1.0) << "k is larger than the number of candidates";
}

TEST(TopKTest, AddsUpTimesByTheWeightsOfTasks) {
  // The second task has weight 3 and its first pick is the best: (100 + 3·40) / (200 + 3·40).
  const std::vector<RankedTask> two = {
      {.score = kScore, .latency_ns = {100, 250, 200, 500}},
      {.score = {2, 1}, .latency_ns = {40, 80}, .weight = 3},
  };
  EXPECT_DOUBLE_EQ(TopK(two, 1), 220.0 / 320);
}

TEST(TopKTest, AFailedPickCostsAsMuchAsTheSlowest) {
  EXPECT_DOUBLE_EQ(
      TopK(std::vector<RankedTask>{{.score = {3, 2, 1}, .latency_ns = {0, 10, 40}}}, 1), 10.0 / 40);
  EXPECT_DOUBLE_EQ(
      TopK(std::vector<RankedTask>{{.score = {3, 2, 1}, .latency_ns = {0, 10, 40}}}, 2), 1.0);
  EXPECT_TRUE(std::isnan(TopK(std::vector<RankedTask>{{.score = {1}, .latency_ns = {0}}}, 1)));
  EXPECT_TRUE(std::isnan(TopK({}, 1)));
}

TEST(AverageRecallTest, IsTheMeanOfTheRecalls) {
  // The first c is not the best; {c, a} are; b is missing among {c, a, d}; all four are.
  EXPECT_DOUBLE_EQ(AverageRecall(kScore, kThroughput, 1), 0);
  EXPECT_DOUBLE_EQ(AverageRecall(kScore, kThroughput, 4), (0 + 1 + 2.0 / 3 + 1) / 4);
  EXPECT_DOUBLE_EQ(AverageRecall(kScore, kThroughput, 9), AverageRecall(kScore, kThroughput, 4));
  EXPECT_DOUBLE_EQ(AverageRecall(kThroughput, kThroughput, 3), 1);
  double sum = 0;
  for (int k = 1; k <= 3; ++k) sum += RecallAtK(kScore, kThroughput, k);
  EXPECT_DOUBLE_EQ(AverageRecall(kScore, kThroughput, 3), sum / 3);
  EXPECT_TRUE(std::isnan(AverageRecall({}, {}, 3)));
}

TEST(PeakAtKTest, IsTheMeanOfTheBestSoFar) {
  // The picks are c, a, d, b; the best so far is 0.5, 1, 1, 1.
  EXPECT_DOUBLE_EQ(PeakAtK(kScore, kThroughput, 1), 0.5);
  EXPECT_DOUBLE_EQ(PeakAtK(kScore, kThroughput, 2), (0.5 + 1) / 2);
  EXPECT_DOUBLE_EQ(PeakAtK(kScore, kThroughput, 4), (0.5 + 3) / 4);
  EXPECT_DOUBLE_EQ(PeakAtK(kScore, kThroughput, 9), (0.5 + 3) / 4);
  // Values are relative to the best throughput of the task.
  EXPECT_DOUBLE_EQ(PeakAtK({2, 1}, {0.1, 0.4}, 2), (0.25 + 1) / 2);
  EXPECT_TRUE(std::isnan(PeakAtK({2, 1}, {0, 0}, 2)));
}

TEST(RecallAtKTest, IsTheShareOfTheBestThatAreFound) {
  EXPECT_DOUBLE_EQ(RecallAtK(kScore, kThroughput, 1), 0.0);      // c, not a
  EXPECT_DOUBLE_EQ(RecallAtK(kScore, kThroughput, 2), 1.0);      // both
  EXPECT_DOUBLE_EQ(RecallAtK(kScore, kThroughput, 3), 2.0 / 3);  // c, a, d of a, c, b
  EXPECT_DOUBLE_EQ(RecallAtK(kScore, kThroughput, 9), 1.0);
}

TEST(PairwiseAccuracyTest, CountsPairsInTheRightOrder) {
  // Of six pairs: (a, b) right, (a, c) wrong, (a, d) right, (b, c) right, (b, d) wrong, (c, d)
  // right.
  EXPECT_DOUBLE_EQ(PairwiseAccuracy(kScore, kThroughput), 4.0 / 6);
  // Only pairs that differ by more than 0.21 count, which excludes (b, d) and (b, c).
  EXPECT_DOUBLE_EQ(PairwiseAccuracy(kScore, kThroughput, 0.21), 3.0 / 4);
  EXPECT_DOUBLE_EQ(PairwiseAccuracy({1, 1, 1, 1}, kThroughput), 0.5) << "all scores are equal";
  EXPECT_TRUE(std::isnan(PairwiseAccuracy({1, 2}, {0.5, 0.5})));
}

TEST(RmseTest, IsTheRootOfTheMeanSquare) {
  EXPECT_DOUBLE_EQ(Rmse({0.5, 0.9, 0.1}, {0.5, 0.6, 0.5}), std::sqrt((0.09 + 0.16) / 3));
  EXPECT_TRUE(std::isnan(Rmse({}, {})));
}

TEST(CalibrationErrorTest, ComparesMeansOfGroups) {
  // Two groups by prediction: {0.1, 0.3} measured {0.3, 0.3}, and {0.7, 0.9} measured {0.9, 0.7}.
  EXPECT_NEAR(CalibrationError({0.9, 0.1, 0.7, 0.3}, {0.7, 0.3, 0.9, 0.3}, 2), 0.5 * 0.1, 1e-15);
  EXPECT_NEAR(CalibrationError({0.2, 0.4}, {0.1, 0.6}, 10), 0.15, 1e-15)
      << "one group per candidate";
  EXPECT_NEAR(CalibrationError({0.2, 0.4}, {0.1, 0.6}, 1), 0.05, 1e-15) << "one group";
}

TEST(CoverageTest, CountsErrorsWithinTheSpread) {
  const std::vector<double> mean = {0.5, 0.5, 0.5, 0.5}, spread = {0.1, 0.1, 0.2, 0},
                            throughput = {0.55, 0.65, 0.1, 0.5};
  EXPECT_DOUBLE_EQ(Coverage(mean, spread, throughput, 1), 2.0 / 4);
  EXPECT_DOUBLE_EQ(Coverage(mean, spread, throughput, 2), 4.0 / 4);
}

}  // namespace
}  // namespace hone::cost_model

// The spread of the Gaussian process covers its errors, including in tasks that it has not seen.
#include "server/research/model/spread_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/base/rng.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/cost_model/metric.h"
#include "tests/status.h"

namespace hone::cost_model {
namespace {

constexpr int kColumns = 8;

// The candidates of one task. Which decisions are good depends on the shape, which is in the first
// columns.
struct SpreadTask {
  FeatureMatrix features;
  std::vector<double> throughput;
};

SpreadTask MakeTask(uint64_t seed, int candidates) {
  SpreadTask task{.features = {.columns = kColumns}};
  Rng rng(seed);
  double shape[3];
  for (double& each : shape) each = 2 * rng.Uniform();
  for (int i = 0; i < candidates; ++i) {
    std::vector<float> row;
    for (const double each : shape) row.push_back(static_cast<float>(each));
    double away = 0;
    for (int c = 3; c < kColumns; ++c) {
      row.push_back(static_cast<float>(2 * rng.Uniform()));
      const double difference = row.back() - shape[c % 3];
      away += difference * difference;
    }
    const double noise = 0.03 * (rng.Uniform() + rng.Uniform() - 1);
    task.features.Append(row, 1);
    task.throughput.push_back(std::exp(-away) + noise);
  }
  const double best = *std::max_element(task.throughput.begin(), task.throughput.end());
  for (double& each : task.throughput) each = std::clamp(each / best, 0.0, 1.0);
  return task;
}

SpreadTask Join(const std::vector<SpreadTask>& tasks) {
  SpreadTask all{.features = {.columns = kColumns}};
  for (const SpreadTask& task : tasks) {
    for (int i = 0; i < task.features.candidates(); ++i) {
      all.features.Append(absl::MakeConstSpan(task.features.values)
                              .subspan(static_cast<size_t>(i) * kColumns, kColumns),
                          1);
    }
    all.throughput.insert(all.throughput.end(), task.throughput.begin(), task.throughput.end());
  }
  return all;
}

double CoverageOf(const CostModel& model, const SpreadTask& task, double spreads) {
  const Prediction prediction = *model.Predict(task.features);
  return Coverage(prediction.mean, prediction.spread, task.throughput, spreads);
}

TEST(SpreadScaleTest, CoversErrorsInUnseenTasks) {
  double one = 0, two = 0;
  constexpr int kFolds = 8;
  for (uint64_t fold = 0; fold < kFolds; ++fold) {
    std::vector<SpreadTask> shown;
    for (uint64_t t = 0; t < 4; ++t) shown.push_back(MakeTask(100 * fold + t, 60));
    const auto model = *CreateCostModel("gp", {});
    const SpreadTask all = Join(shown);
    ASSERT_THAT(model->Update(all.features, all.throughput), IsOk());
    const SpreadTask unseen = MakeTask(100 * fold + 99, 60);
    one += CoverageOf(*model, unseen, 1) / kFolds;
    two += CoverageOf(*model, unseen, 2) / kFolds;
  }
  std::printf("within one spread %.3f, within two %.3f\n", one, two);
  EXPECT_GT(one, 0.5);
  EXPECT_GT(two, 0.8);
}

TEST(SpreadScaleTest, IsTightInKnownTasks) {
  const SpreadTask shown = MakeTask(1, 200);
  const auto model = *CreateCostModel("gp", {});
  ASSERT_THAT(model->Update(shown.features, shown.throughput), IsOk());
  SpreadTask more = MakeTask(1, 400);  // same shape; the first half are the same candidates
  const double one = CoverageOf(*model, more, 1);
  std::printf("within one spread %.3f\n", one);
  EXPECT_GT(one, 0.55);
  EXPECT_LT(one, 0.95);
}

TEST(SpreadScaleTest, LeaveOutMatchesRefitting) {
  Rng rng(5);
  Matrix points(30, 2);
  for (float& value : points.values) value = static_cast<float>(rng.Uniform());
  std::vector<double> labels;
  for (int i = 0; i < points.rows; ++i) labels.push_back(points.row(i)[0] + rng.Uniform());
  const Kernel kernel{.shape = Kernel::Shape::kRbf, .length = 0.5, .noise = std::sqrt(0.1)};
  const auto input = [&](int i) { return KernelInput{{points.row(i), points.row(i) + 2}, {}}; };
  const std::vector<int> left_out = {3, 4, 5, 29};
  GaussianProcess all(kernel), rest(kernel);
  for (int i = 0; i < points.rows; ++i) {
    all.Add(input(i), labels[i]);
    if (std::find(left_out.begin(), left_out.end(), i) == left_out.end())
      rest.Add(input(i), labels[i]);
  }
  std::vector<double> squares, variances;
  LeftOut(all).Append(left_out, squares, variances);
  ASSERT_EQ(squares.size(), 4u);
  for (size_t k = 0; k < left_out.size(); ++k) {
    const GaussianProcess::Marginal marginal = rest.At(input(left_out[k]));
    const double error = marginal.mean - labels[left_out[k]];
    EXPECT_NEAR(squares[k], error * error, 1e-4);
    EXPECT_NEAR(variances[k], marginal.deviation * marginal.deviation, 1e-4);
  }
}

TEST(SpreadScaleTest, GroupsNearbyPoints) {
  Matrix points(12, 1);
  for (int i = 0; i < 12; ++i) points.row(i)[0] = static_cast<float>(100 * (i % 3) + i / 3);
  const std::vector<int> group = Neighbourhoods(points, 3);
  for (int i = 0; i < 12; ++i) {
    for (int j = 0; j < 12; ++j) EXPECT_EQ(group[i] == group[j], i % 3 == j % 3);
  }
}

}  // namespace
}  // namespace hone::cost_model

// The building blocks of the models: linear algebra, scaling, losses and fits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/base/rng.h"
#include "server/research/model/calibration.h"
#include "server/research/model/column_scaler.h"
#include "server/tuner/cost_model/dense.h"
#include "server/tuner/cost_model/pack_objective.h"
#include "server/tuner/cost_model/rank_loss.h"

namespace hone::cost_model {
namespace {

Matrix Drawn(int rows, int columns, uint64_t seed) {
  Matrix result(rows, columns);
  Rng rng(seed);
  for (float& value : result.values) value = static_cast<float>(2 * rng.Uniform() - 1);
  return result;
}

TEST(DenseTest, ProductsAreSums) {
  const Matrix a = Drawn(5, 7, 1), b = Drawn(7, 6, 2), c = Drawn(5, 6, 3);
  Matrix product(5, 6), transposed(7, 6);
  AddProduct(a, b, product);
  AddTransposedProduct(a, c, transposed);
  for (int j = 0; j < 6; ++j) {
    for (int i = 0; i < 5; ++i) {
      double sum = 0;
      for (int k = 0; k < 7; ++k) sum += double{a.row(i)[k]} * b.row(k)[j];
      EXPECT_NEAR(product.row(i)[j], sum, 1e-5);
    }
    for (int k = 0; k < 7; ++k) {
      double sum = 0;
      for (int i = 0; i < 5; ++i) sum += double{a.row(i)[k]} * c.row(i)[j];
      EXPECT_NEAR(transposed.row(k)[j], sum, 1e-5);
    }
  }
}

TEST(DenseTest, CholeskyHandlesSingularMatrices) {
  constexpr int n = 9;
  const Matrix a = Drawn(n, n, 4);
  std::vector<double> matrix(n * n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      matrix[i * n + j] = i == j ? 0.5 : 0;
      for (int k = 0; k < n; ++k) matrix[i * n + j] += double{a.row(i)[k]} * a.row(j)[k];
    }
  }
  Cholesky cholesky;
  for (int i = 0; i < n; ++i) {
    const auto row = matrix.begin() + i * n;
    cholesky.Append({row, row + i}, row[i]);
  }
  std::vector<double> x(n);
  std::iota(x.begin(), x.end(), 1.0);
  cholesky.SolveLower(absl::MakeSpan(x));
  cholesky.SolveUpper(absl::MakeSpan(x));
  for (int i = 0; i < n; ++i) {
    double sum = 0;
    for (int j = 0; j < n; ++j) sum += matrix[i * n + j] * x[j];
    EXPECT_NEAR(sum, i + 1, 1e-9);
  }
  Cholesky small;
  EXPECT_EQ(small.Append({}, 4), std::vector<double>({2}));
  EXPECT_EQ(small.Append({2}, 10), std::vector<double>({1, 3}));
  EXPECT_NEAR(small.LogDeterminant(), std::log(36), 1e-12);
  EXPECT_EQ(small.Product({1, 2}), std::vector<double>({2, 7}));
  EXPECT_NEAR(small.Append({4, 2}, 4)[2], 2e-5, 1e-12);  // twice the first row
}

TEST(ColumnScalerTest, StandardizesAndLeavesConstantsOut) {
  const std::vector<float> rows = {1, 5, -1, 3, 5, 1};
  const ColumnScaler scaler = ColumnScaler::Fit(rows, 3);
  EXPECT_EQ(scaler.kept(), 2);
  EXPECT_EQ(scaler.PositionOf(1), -1);
  EXPECT_EQ(scaler.PositionOf(2), 1);
  EXPECT_NEAR(scaler.DeviationAt(0), 1, 1e-6);
  std::vector<float> out(2);
  scaler.Apply({4, 7, 100}, absl::MakeSpan(out));
  EXPECT_EQ(out, (std::vector<float>{2, ColumnScaler::kLargest}));
  EXPECT_EQ(scaler.PoolMeans(rows, {0, 1, 2}), (std::vector<float>{-1, -1, 1, 1}));
  EXPECT_EQ(scaler.PoolMeans(rows, {0, 2}), (std::vector<float>{0, 0}));
}

TEST(RankLossTest, DerivativesMatchTheLoss) {
  const std::vector<double> labels = {0.1, 0.9, 0.5, 0.5};
  const RankLoss loss(labels, 8, 0);
  std::vector<double> scores = {0.3, -0.2, 0.1, 0.7}, gradient(4), hessian(4), ignored(4);
  loss.Differentiate(scores, absl::MakeSpan(gradient), absl::MakeSpan(hessian));
  for (size_t i = 0; i < 4; ++i) {
    constexpr double kStep = 1e-4;
    const auto at = [&](double shift) {
      std::vector<double> moved = scores;
      moved[i] += shift;
      std::vector<double> other(4);
      return 4 * loss.Differentiate(moved, absl::MakeSpan(ignored), absl::MakeSpan(other));
    };
    EXPECT_NEAR(gradient[i], (at(kStep) - at(-kStep)) / (2 * kStep), 1e-6);
    EXPECT_NEAR(hessian[i], (at(kStep) - 2 * at(0) + at(-kStep)) / (kStep * kStep), 1e-4);
  }
}

TEST(RankLossTest, RightOrderCostsLessAndTiesNothing) {
  const std::vector<double> labels = {0.2, 0.4, 0.8};
  std::vector<double> gradient(3), hessian(3);
  const RankLoss loss(labels, 8, 0);
  const auto at = [&](std::vector<double> scores) {
    return loss.Differentiate(scores, absl::MakeSpan(gradient), absl::MakeSpan(hessian));
  };
  EXPECT_LT(at({1, 2, 3}), at({1, 3, 2}));
  EXPECT_LT(at({1, 3, 2}), at({3, 2, 1}));
  EXPECT_TRUE(std::isfinite(at({1e6, 0, -1e6})));
  const std::vector<double> equal = {0.5, 0.5, 0.5};
  EXPECT_EQ(RankLoss(equal, 8, 0)
                .Differentiate({1, 2, 3}, absl::MakeSpan(gradient), absl::MakeSpan(hessian)),
            0);
  EXPECT_EQ(gradient, std::vector<double>(3, 0.0));
}

TEST(PackRankTest, RowsOfACandidateShareItsDerivatives) {
  const std::vector<int32_t> row_begin = {0, 2, 3};
  const std::vector<double> labels = {0.2, 1};
  PackRank objective(row_begin, labels, 0.3, 0);
  objective.Differentiate({0.5, 0.5, 0.2});
  EXPECT_GT(objective.gradient()[0], 0);  // ranked before a better candidate
  EXPECT_EQ(objective.gradient()[0], objective.gradient()[1]);
  EXPECT_LT(objective.gradient()[2], 0);
  EXPECT_GT(objective.hessian()[2], 0);
}

TEST(CalibrationTest, IsAnIncreasingLine) {
  const Calibration line = Calibration::Fit({0, 1, 2}, {0.1, 0.3, 0.5});
  EXPECT_NEAR(line(3), 0.7, 1e-9);
  const Calibration wrong = Calibration::Fit({0, 1, 2}, {0.5, 0.3, 0.1});
  EXPECT_GT(wrong.slope, 0);
  EXPECT_NEAR(wrong(1), 0.3, 1e-9);
}

}  // namespace
}  // namespace hone::cost_model

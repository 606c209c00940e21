#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "server/tuner/cost_model/pack_objective.h"

namespace hone::cost_model {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;

TEST(PackSumTest, DerivesTheWeightedSquareOfTheSum) {
  const std::vector<int32_t> row_begin = {0, 2, 3};
  const std::vector<double> throughput = {0.8, 0.5};
  PackSum objective(row_begin, throughput, /*learning_rate=*/0.2);
  const double error = objective.Differentiate({0.25f, 0.25f, 0.75f});
  // Candidate 0: sum 0.5, error −0.3, weight 0.8. Candidate 1: error 0.25, weight 0.5.
  EXPECT_THAT(objective.gradient(), ElementsAre(FloatEq(-0.24f), FloatEq(-0.24f), FloatEq(0.125f)));
  EXPECT_THAT(objective.hessian(), ElementsAre(FloatEq(0.8f), FloatEq(0.8f), FloatEq(0.5f)));
  EXPECT_NEAR(error, std::sqrt((0.3 * 0.3 + 0.25 * 0.25) / 2), 1e-7);
}

TEST(PackSumTest, FailedCandidatesCount) {
  const std::vector<int32_t> row_begin = {0, 1};
  const std::vector<double> throughput = {0};
  PackSum objective(row_begin, throughput, 0.2);
  objective.Differentiate({0.5f});
  EXPECT_THAT(objective.gradient(), ElementsAre(FloatEq(0.5 * PackSum::kMinWeight)));
  EXPECT_THAT(objective.hessian(), ElementsAre(FloatEq(PackSum::kMinWeight)));
}

// A Newton step on every row, scaled by the learning rate, must not overshoot the label.
TEST(PackSumTest, ManyStatementsDoNotOvershoot) {
  for (const int rows : {1, 4, 5, 6, 20, 100}) {
    const std::vector<int32_t> row_begin = {0, rows};
    const std::vector<double> throughput = {1};
    PackSum objective(row_begin, throughput, 0.2);
    std::vector<float> scores(rows, 0.0f);
    double error = objective.Differentiate(scores);
    for (int step = 0; step < 10; ++step) {
      for (int row = 0; row < rows; ++row) {
        scores[row] -= 0.2f * objective.gradient()[row] / objective.hessian()[row];
      }
      const double next = objective.Differentiate(scores);
      EXPECT_LE(next, error + 1e-5) << rows << " rows, step " << step;
      error = next;
    }
    EXPECT_LT(error, 0.2) << rows << " rows";
    EXPECT_THAT(objective.hessian(), Each(FloatEq(std::max(1.0, 0.2 * rows))));
  }
}

TEST(PackSumTest, SumsRowsPerCandidate) {
  EXPECT_THAT(SumRows({0, 1, 1, 3}, {1.5f, 2.0f, 3.0f}), ElementsAre(1.5, 0, 5));
}

}  // namespace
}  // namespace hone::cost_model

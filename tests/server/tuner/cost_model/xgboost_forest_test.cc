// Compares the flat forest with the XGBoost library that trained its trees.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xgboost/c_api.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "server/tuner/cost_model/metric.h"
#include "server/tuner/cost_model/pack_objective.h"
#include "server/tuner/cost_model/xgboost_booster.h"
#include "tests/server/tuner/cost_model/synthetic.h"
#include "tests/status.h"

namespace hone::cost_model {
namespace {

using ::testing::HasSubstr;

constexpr int kRounds = 30;

std::string TrainedJson(const SyntheticTask& task) {
  auto booster = XgboostBooster::Create(task.features.values, task.features.columns,
                                        {{"tree_method", "hist"},
                                         {"max_depth", "10"},
                                         {"eta", "0.2"},
                                         {"base_score", "0"},
                                         {"min_child_weight", "0"},
                                         {"nthread", "1"},
                                         {"verbosity", "0"}});
  EXPECT_THAT(booster, IsOk());
  PackSum objective(task.features.row_begin, task.throughput, 0.2);
  for (int round = 0; round < kRounds; ++round) {
    objective.Differentiate(*(*booster)->TrainingScores());
    EXPECT_THAT((*booster)->BoostOneRound(objective.gradient(), objective.hessian()), IsOk());
  }
  return *(*booster)->Json();
}

std::vector<float> LibraryPrediction(const std::string& json, const FeatureMatrix& rows,
                                     int rounds) {
  BoosterHandle booster = nullptr;
  DMatrixHandle matrix = nullptr;
  EXPECT_EQ(XGBoosterCreate(nullptr, 0, &booster), 0);
  EXPECT_EQ(XGBoosterLoadModelFromBuffer(booster, json.data(), json.size()), 0);
  EXPECT_EQ(
      XGDMatrixCreateFromMat(rows.values.data(), rows.rows(), rows.columns, std::nanf(""), &matrix),
      0);
  const std::string config =
      R"({"type": 1, "training": false, "iteration_begin": 0, "strict_shape": false,
          "iteration_end": )" +
      std::to_string(rounds) + "}";
  const bst_ulong* shape = nullptr;
  bst_ulong dimensions = 0;
  const float* scores = nullptr;
  EXPECT_EQ(
      XGBoosterPredictFromDMatrix(booster, matrix, config.c_str(), &shape, &dimensions, &scores), 0)
      << XGBGetLastError();
  std::vector<float> result(scores, scores + rows.rows());
  XGDMatrixFree(matrix);
  XGBoosterFree(booster);
  return result;
}

TEST(XgboostForestTest, MatchesTheLibrary) {
  const SyntheticTask train = MakeSyntheticTask(/*seed=*/11, /*candidates=*/300);
  const std::string json = TrainedJson(train);
  SyntheticTask held_out = MakeSyntheticTask(/*seed=*/12, /*candidates=*/200);
  // Values between, below and above the training values, and at the limits of the type.
  for (size_t i = 0; i < held_out.features.values.size(); i += 3) {
    held_out.features.values[i] = held_out.features.values[i] * 1.37f - 2.1f;
  }
  held_out.features.values[0] = std::numeric_limits<float>::max();
  held_out.features.values[1] = std::numeric_limits<float>::lowest();
  for (const int rounds : {1, 7, kRounds}) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto forest,
                              ForestOfXgboostJson(json, train.features.columns, rounds));
    EXPECT_EQ(forest.trees(), rounds);
    for (const SyntheticTask* task : {&train, &std::as_const(held_out)}) {
      const FeatureMatrix* features = &task->features;
      std::vector<float> scores(features->rows());
      forest.Predict(features->values, absl::MakeSpan(scores));
      const std::vector<float> expected = LibraryPrediction(json, *features, rounds);
      for (size_t row = 0; row < scores.size(); ++row) {
        ASSERT_FLOAT_EQ(scores[row], expected[row]) << "row " << row << ", rounds " << rounds;
      }
    }
  }
}

TEST(XgboostForestTest, ErrorNamesMissingFields) {
  const auto message = [](absl::string_view json) {
    const absl::Status status = ForestOfXgboostJson(json, 2, 100).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal));
    return std::string(status.message());
  };
  EXPECT_THAT(message("{"), HasSubstr("not JSON"));
  EXPECT_THAT(message("[]"), HasSubstr("no learner"));
  EXPECT_THAT(message(R"({"learner": {"gradient_booster": {"model": 3}}})"), HasSubstr("no trees"));
  const auto tree = [](const std::string& left) {
    return R"({"learner": {"gradient_booster": {"model": {"trees": [{"left_children": )" + left +
           R"(, "right_children": [-1], "split_indices": [0], "split_conditions": [1.5]}]}}}})";
  };
  EXPECT_THAT(ForestOfXgboostJson(tree("[-1]"), 2, 100), IsOk());
  EXPECT_THAT(message(tree("[\"a\"]")), HasSubstr("left_children"));
  EXPECT_THAT(message(tree("[7]")), HasSubstr("tree 0"));
}

TEST(XgboostBoosterTest, LibraryErrorsBecomeStatus) {
  const SyntheticTask task = MakeSyntheticTask(/*seed=*/1, /*candidates=*/5);
  const auto booster = XgboostBooster::Create(task.features.values, task.features.columns,
                                              {{"tree_method", "no such method"}});
  const absl::Status status =
      booster.ok() ? (*booster)->TrainingScores().status() : booster.status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("XGBoost failed to")));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no such method"));
}

// AutoTVM's stop: the trees up to the round with the best recall of the training candidates.
TEST(TrainForestTest, StopsWhenTheRecallNoLongerRises) {
  const SyntheticTask task = MakeSyntheticTask(/*seed=*/3, /*candidates=*/200);
  ForestOptions options{
      .learning_rate = 0.3, .depth = "3", .gamma = "0.0001", .ranks = true, .max_rounds = 8000};
  options.patience = 20;
  options.recall_at = 32;
  HONE_ASSERT_OK_AND_ASSIGN(const FlatForest stopped,
                            TrainForest(task.features, task.throughput, options, {}));
  EXPECT_GE(stopped.trees(), 1);
  EXPECT_LT(stopped.trees(), 2000);
  const double recall =
      AverageRecall(ForestScores(stopped, task.features), task.throughput, options.recall_at);
  EXPECT_GT(recall, 0.6);
  // One tree more or less patience finds nothing better on the way.
  options.max_rounds = stopped.trees();
  HONE_ASSERT_OK_AND_ASSIGN(const FlatForest same,
                            TrainForest(task.features, task.throughput, options, {}));
  EXPECT_EQ(same.trees(), stopped.trees());
}

}  // namespace
}  // namespace hone::cost_model

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "server/tuner/cost_model/byte_io.h"
#include "server/tuner/cost_model/flat_forest.h"
#include "server/tuner/cost_model/metric.h"
#include "server/tuner/cost_model/model_file.h"
#include "server/tuner/cost_model/models.h"
#include "tests/server/tuner/cost_model/synthetic.h"
#include "tests/status.h"

namespace hone::cost_model {
namespace {

std::vector<double> TrainAndScore(const SyntheticTask& train, const SyntheticTask& held_out) {
  const auto model = MakeModel(kXgboostModel, {.seed = 1});
  EXPECT_THAT(model->Update(train.features, train.throughput), IsOk());
  return model->Predict(held_out.features)->mean;
}

TEST(XgboostModelTest, ReadsStatementFeatures) {
  EXPECT_EQ(MakeModel(kXgboostModel)->feature_set(), "statement");
}

TEST(XgboostModelTest, OrdersUnseenCandidates) {
  const SyntheticTask held_out = MakeSyntheticTask(/*seed=*/22, /*candidates=*/300);
  const std::vector<double> scores =
      TrainAndScore(MakeSyntheticTask(/*seed=*/21, /*candidates=*/1000), held_out);
  EXPECT_GE(PairwiseAccuracy(scores, held_out.throughput, kTimingNoise), 0.9);
}

// Scores are sums over statements: a model trained on programs of one statement must score programs
// of several.
TEST(XgboostModelTest, ScoresAreSumsOverStatements) {
  const SyntheticTask train = MakeSyntheticTask(/*seed=*/31, /*candidates=*/200);
  const auto model = MakeModel(kXgboostModel);
  ASSERT_THAT(model->Update(train.features, train.throughput), IsOk());
  FeatureMatrix apart{.columns = train.features.columns};
  FeatureMatrix joined{.columns = train.features.columns};
  const auto rows = absl::MakeConstSpan(train.features.values);
  for (int row = 0; row < 12; ++row) {
    apart.Append(rows.subspan(row * apart.columns, apart.columns), 1);
  }
  joined.Append(rows.first(12 * joined.columns), 12);
  const std::vector<double> scores = model->Predict(apart)->mean;
  EXPECT_NEAR(model->Predict(joined)->mean[0], std::accumulate(scores.begin(), scores.end(), 0.0),
              1e-6);
}

TEST(XgboostModelTest, RefusesTreesThatContradictTheirHeader) {
  ByteWriter writer;
  FlatForest().Serialize(writer);
  const std::string trees = std::move(writer).Finish();
  ModelHeader header = {.name = "xgboost", .version = 1, .feature_set = "statement"};
  const auto model = MakeModel(kXgboostModel);
  EXPECT_THAT(model->Load(EncodeModel(header, trees)), IsOk());
  for (const std::string& payload : {trees + "x", trees.substr(1), std::string()}) {
    EXPECT_THAT(model->Load(EncodeModel(header, payload)),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  header.columns = 5;
  EXPECT_THAT(model->Load(EncodeModel(header, trees)),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(XgboostModelTest, FailedCandidatesGetLowScores) {
  // Two kinds of candidates that differ in one column. Candidates of the second kind fail.
  SyntheticTask task;
  task.features.columns = 3;
  for (int i = 0; i < 100; ++i) {
    const bool failed = i % 2 == 1;
    task.features.Append({failed ? 1.0f : 0.0f, static_cast<float>(i % 7), 1.0f}, 1);
    task.throughput.push_back(failed ? 0 : 0.5 + 0.05 * (i % 7));
  }
  const std::vector<double> scores = TrainAndScore(task, task);
  for (size_t i = 0; i + 1 < scores.size(); i += 2) {
    EXPECT_GT(scores[i], 0.4);
    EXPECT_LT(scores[i + 1], 0.15);
  }
}

TEST(XgboostModelTest, ConvergesForProgramsOfManyStatements) {
  SyntheticTask task;
  task.features.columns = 4;
  for (int i = 0; i < 120; ++i) {
    constexpr int kRows = 25;
    std::vector<float> values;
    for (int row = 0; row < kRows; ++row) {
      values.insert(values.end(), {static_cast<float>(row), static_cast<float>(i % 12),
                                   static_cast<float>((i * 7 + row) % 5), 1.0f});
    }
    task.features.Append(values, kRows);
    task.throughput.push_back((1 + i % 12) / 12.0);
  }
  EXPECT_GE(PairwiseAccuracy(TrainAndScore(task, task), task.throughput, kTimingNoise), 0.98);
}

}  // namespace
}  // namespace hone::cost_model

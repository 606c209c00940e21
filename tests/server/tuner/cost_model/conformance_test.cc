// The contract of CostModel, checked for every registered model.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/research/model/models.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/cost_model/draft_weights.h"
#include "server/tuner/cost_model/metric.h"
#include "server/tuner/cost_model/models.h"
#include "server/tuner/cost_model/registry.h"
#include "tests/server/tuner/cost_model/synthetic.h"
#include "tests/status.h"

namespace hone::cost_model {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class CostModelConformanceTest : public testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<CostModel> Make() {
    auto model = CreateCostModel(GetParam(), {.seed = 7});
    EXPECT_THAT(model, IsOk());
    return *std::move(model);
  }

  static std::vector<double> Scores(const CostModel& model, const FeatureMatrix& features) {
    const absl::StatusOr<Prediction> prediction = model.Predict(features);
    EXPECT_THAT(prediction, IsOk());
    return prediction.ok() ? prediction->mean : std::vector<double>();
  }

  std::unique_ptr<CostModel> Trained() const {
    std::unique_ptr<CostModel> model = Make();
    EXPECT_THAT(model->Update(train_.features, train_.throughput), IsOk());
    return model;
  }

  // Expects an InvalidArgument status that contains `text`, and that the trained model has not
  // changed.
  void ExpectRefused(CostModel& model, const absl::Status& status, absl::string_view text) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(std::string(text))));
    if (unchanged_.empty()) unchanged_ = Scores(*Trained(), held_out_.features);
    EXPECT_EQ(Scores(model, held_out_.features), unchanged_);
  }

  // Returns a synthetic task that the model accepts. For the feature set "tree", the parent of each
  // row is the row before it.
  static SyntheticTask MakeTask(uint64_t seed, int candidates, int columns) {
    SyntheticTask task = MakeSyntheticTask(seed, candidates, columns);
    const std::string set(Make()->feature_set());
    if (columns == KnownColumns() && (set == "draft" || set == "residual")) {
      // A program for a CPU has no parts of a GPU.
      for (int r = 1; r <= task.features.rows(); ++r) {
        float* const end = task.features.values.data() + static_cast<size_t>(r) * columns;
        std::fill(end - kDraftColumns + kCpuEnd, end, 0.0f);
      }
    }
    if (set != "tree") return task;
    for (int i = 0; i < task.features.candidates(); ++i) {
      const int32_t begin = task.features.row_begin[i], end = task.features.row_begin[i + 1];
      for (int32_t r = begin; r < end; ++r) {
        task.features.values[static_cast<size_t>(r) * columns] = static_cast<float>(r - begin - 1);
      }
    }
    return task;
  }

  // Models that know the meaning of the columns accept no other number.
  static int KnownColumns() {
    const std::string set(Make()->feature_set());
    return set == "analytic"   ? kAnalyticColumns
           : set == "draft"    ? kDraftColumns
           : set == "residual" ? kResidualColumns
                               : 0;
  }
  const bool any_columns_ = KnownColumns() == 0;
  const int columns_ = any_columns_ ? 20 : KnownColumns();
  const SyntheticTask train_ = MakeTask(/*seed=*/1, /*candidates=*/60, columns_);
  const SyntheticTask held_out_ = MakeTask(/*seed=*/2, /*candidates=*/30, columns_);

 private:
  std::vector<double> unchanged_;  // the scores of a trained model
};

TEST_P(CostModelConformanceTest, IsRegisteredUnderItsOwnName) {
  EXPECT_EQ(Make()->name(), GetParam());
  for (const CostModelInfo& info : CostModelInfos()) {
    if (info.name != GetParam()) continue;
    EXPECT_EQ(info.feature_set, Make()->feature_set());
    EXPECT_EQ(info.missing, "");
    EXPECT_EQ(info.has_spread, !Trained()->Predict(held_out_.features)->spread.empty());
  }
}

TEST_P(CostModelConformanceTest, UntrainedModelPredictsZerosOrTheDraft) {
  const auto model = Make();
  const std::vector<double> scores = Scores(*model, held_out_.features);
  EXPECT_THAT(scores, SizeIs(held_out_.features.candidates()));
  if (!any_columns_ && GetParam() != "formula") {
    EXPECT_THAT(scores, Each(testing::Gt(0.0)));
  } else {
    EXPECT_THAT(scores, Each(0.0));
  }
  EXPECT_THAT(Scores(*model, FeatureMatrix()), SizeIs(0));
}

TEST_P(CostModelConformanceTest, AnswersOneFiniteScorePerCandidate) {
  const auto model = Trained();
  HONE_ASSERT_OK_AND_ASSIGN(const Prediction prediction, model->Predict(held_out_.features));
  ASSERT_THAT(prediction.mean, SizeIs(held_out_.features.candidates()));
  for (const double score : prediction.mean) EXPECT_TRUE(std::isfinite(score));
  if (!prediction.spread.empty()) {
    EXPECT_THAT(prediction.spread, SizeIs(held_out_.features.candidates()));
    EXPECT_THAT(prediction.spread, Each(testing::Ge(0.0)));
  }
  EXPECT_THAT(Scores(*model, FeatureMatrix{.columns = columns_}), SizeIs(0));
}

TEST_P(CostModelConformanceTest, IsDeterministic) {
  const auto model = Trained();
  const std::vector<double> scores = Scores(*model, held_out_.features);
  EXPECT_EQ(Scores(*model, held_out_.features), scores);
  EXPECT_EQ(Scores(*Trained(), held_out_.features), scores);
}

TEST_P(CostModelConformanceTest, UpdateForgetsEarlierCandidates) {
  const auto model = Make();
  const SyntheticTask other = MakeTask(/*seed=*/3, /*candidates=*/40, any_columns_ ? 14 : columns_);
  ASSERT_THAT(model->Update(other.features, other.throughput), IsOk());
  ASSERT_THAT(model->Update(train_.features, train_.throughput), IsOk());
  EXPECT_EQ(Scores(*model, held_out_.features), Scores(*Trained(), held_out_.features));

  ASSERT_THAT(model->Update(FeatureMatrix(), Labels()), IsOk());
  EXPECT_EQ(Scores(*model, held_out_.features), Scores(*Make(), held_out_.features));
}

TEST_P(CostModelConformanceTest, AcceptsExtremeAndEqualLabels) {
  const auto model = Make();
  for (const double label : {0.0, 1.0}) {
    const std::vector<double> labels(train_.throughput.size(), label);
    ASSERT_THAT(model->Update(train_.features, labels), IsOk());
    for (const double score : Scores(*model, held_out_.features)) {
      EXPECT_TRUE(std::isfinite(score));
    }
  }
  const SyntheticTask one = MakeTask(/*seed=*/4, /*candidates=*/1, columns_);
  EXPECT_THAT(model->Update(one.features, one.throughput), IsOk());
}

TEST_P(CostModelConformanceTest, PredictsInSeveralThreadsAtOnce) {
  const auto model = Trained();
  const std::vector<double> scores = Scores(*model, held_out_.features);
  std::vector<std::vector<double>> answers(4);
  std::vector<std::thread> threads;
  for (std::vector<double>& answer : answers) {
    threads.emplace_back([&] { answer = Scores(*model, held_out_.features); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(answers, Each(scores));
}

TEST_P(CostModelConformanceTest, RejectsInvalidLabels) {
  const auto model = Trained();
  for (const double label : {-0.01, 1.01, double{kNan}, double{kInfinity}}) {
    std::vector<double> labels = train_.throughput;
    labels[3] = label;
    ExpectRefused(*model, model->Update(train_.features, labels), "candidate 3");
  }
  std::vector<double> labels = train_.throughput;
  labels.pop_back();
  ExpectRefused(*model, model->Update(train_.features, labels), "60 candidates, but 59");
}

TEST_P(CostModelConformanceTest, RefusesFeaturesThatAreNotFinite) {
  const auto model = Trained();
  for (const float value : {kNan, kInfinity, -kInfinity}) {
    FeatureMatrix features = train_.features;
    features.values[(features.row_begin[5] + 1) * columns_ + 4] = value;
    ExpectRefused(*model, model->Update(features, train_.throughput),
                  "feature 4 of candidate 5, row 1,");
    ExpectRefused(*model, model->Predict(features).status(), "feature 4 of candidate 5, row 1,");
  }
}

TEST_P(CostModelConformanceTest, RejectsAnInconsistentMatrix) {
  const auto model = Trained();
  FeatureMatrix features = train_.features;
  features.values.pop_back();
  ExpectRefused(*model, model->Update(features, train_.throughput), "values");
  ExpectRefused(*model, model->Predict(features).status(), "values");
  features = train_.features;
  features.row_begin[2] = features.row_begin[3] + 1;
  ExpectRefused(*model, model->Update(features, train_.throughput), "decreases at candidate 2");
  features.row_begin.clear();
  ExpectRefused(*model, model->Predict(features).status(), "row_begin");
}

TEST_P(CostModelConformanceTest, RejectsRowsOfAnotherWidth) {
  const auto model = Trained();
  if (model->feature_set().empty()) GTEST_SKIP() << "reads no features";
  const SyntheticTask narrow = MakeTask(/*seed=*/2, /*candidates=*/3, /*columns=*/12);
  ExpectRefused(*model, model->Predict(narrow.features).status(),
                absl::StrCat("trained on ", columns_));
  if (!any_columns_)
    ExpectRefused(*model, model->Update(narrow.features, narrow.throughput), "of 12 columns");
  FeatureMatrix features = train_.features;
  features.Append({}, 0);
  ExpectRefused(*model, model->Predict(features).status(), "candidate 60 has no feature rows");
}

TEST_P(CostModelConformanceTest, TakesCandidatesWithoutRowsWhenItReadsNone) {
  const auto model = Make();
  if (!model->feature_set().empty()) GTEST_SKIP() << "reads " << model->feature_set();
  FeatureMatrix features;
  for (int i = 0; i < 5; ++i) features.Append({}, 0);
  ASSERT_THAT(model->Update(features, {0, 0.25, 0.5, 0.75, 1}), IsOk());
  EXPECT_THAT(Scores(*model, features), SizeIs(5));
}

TEST_P(CostModelConformanceTest, SavesAndLoads) {
  const auto model = Trained();
  HONE_ASSERT_OK_AND_ASSIGN(const std::string bytes, model->Save());
  const auto loaded = Make();
  ASSERT_THAT(loaded->Load(bytes), IsOk());
  EXPECT_EQ(Scores(*loaded, held_out_.features), Scores(*model, held_out_.features));
  EXPECT_EQ(*loaded->Save(), bytes);
}

TEST_P(CostModelConformanceTest, SavesAndLoadsAnUntrainedModel) {
  HONE_ASSERT_OK_AND_ASSIGN(const std::string bytes, Make()->Save());
  const auto model = Trained();
  ASSERT_THAT(model->Load(bytes), IsOk());
  EXPECT_EQ(Scores(*model, held_out_.features), Scores(*Make(), held_out_.features));
}

TEST_P(CostModelConformanceTest, RefusesTruncatedAndDamagedBytes) {
  const auto model = Trained();
  const std::string bytes = *model->Save();
  // Of large models some hundred positions, because each load takes the digest of all bytes.
  const size_t step = std::max<size_t>(997, bytes.size() / 300);
  for (size_t size = 0; size < bytes.size(); size += size < 200 ? 1 : step) {
    EXPECT_THAT(model->Load(bytes.substr(0, size)), StatusIs(absl::StatusCode::kInvalidArgument))
        << "the first " << size << " bytes";
  }
  for (size_t at = 0; at < bytes.size(); at += at < 200 ? 1 : step) {
    std::string damaged = bytes;
    damaged[at] ^= 0x10;
    EXPECT_THAT(model->Load(damaged), StatusIs(absl::StatusCode::kInvalidArgument))
        << "byte " << at;
  }
  EXPECT_THAT(model->Load(bytes + "x"), StatusIs(absl::StatusCode::kInvalidArgument));
  ExpectRefused(*model, model->Load("no model at all"), "header");
}

TEST_P(CostModelConformanceTest, RefusesTheBytesOfOtherModels) {
  const auto model = Trained();
  for (const std::string& other : CostModelNames()) {
    if (other == GetParam()) continue;
    const std::string bytes = *(*CreateCostModel(other, {}))->Save();
    ExpectRefused(*model, model->Load(bytes), "it is of model '" + other + "'");
  }
}

// The score of a candidate does not depend on the other candidates in the batch.
TEST_P(CostModelConformanceTest, ScoresCandidatesOneByOne) {
  const auto model = Trained();
  if (model->feature_set().empty()) GTEST_SKIP() << "scores depend on the position in the batch";
  const std::vector<double> scores = Scores(*model, held_out_.features);
  for (int i = 0; i < held_out_.features.candidates(); ++i) {
    const int32_t begin = held_out_.features.row_begin[i],
                  end = held_out_.features.row_begin[i + 1];
    FeatureMatrix one{.columns = columns_};
    one.Append(absl::MakeConstSpan(held_out_.features.values)
                   .subspan(begin * columns_, (end - begin) * columns_),
               end - begin);
    EXPECT_EQ(Scores(*model, one)[0], scores[i]);
  }
}

// A model either learns what offsets do not say, or refuses them.
TEST_P(CostModelConformanceTest, LearnsAResidualOrRefusesOffsets) {
  const auto model = Trained();
  std::vector<double> offset(train_.throughput.size(), 0.0);
  offset[4] = kInfinity;
  ExpectRefused(*model,
                model->Update(train_.features, {.throughput = train_.throughput, .offset = offset}),
                "the offset of candidate 4");
  offset.resize(7);
  ExpectRefused(*model,
                model->Update(train_.features, {.throughput = train_.throughput, .offset = offset}),
                "60 candidates, but 7 offsets");
  // The offsets know everything, so nothing is left to learn.
  offset.clear();
  for (const double each : train_.throughput) offset.push_back(std::log(std::max(each, 1e-3)));
  const absl::Status status =
      model->Update(train_.features, {.throughput = train_.throughput, .offset = offset});
  if (!status.ok()) {
    ExpectRefused(*model, status, "cannot learn a residual");
    return;
  }
  std::vector<double> sum = Scores(*model, train_.features);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += offset[i];
  EXPECT_GT(PairwiseAccuracy(sum, train_.throughput, kTimingNoise), 0.95);
}

TEST_P(CostModelConformanceTest, TakesResultsOfSeveralTargets) {
  const auto model = Make();
  std::vector<int32_t> targets, tasks;
  for (size_t i = 0; i < train_.throughput.size(); ++i) {
    targets.push_back(i % 3 == 0 ? 1 : 0);
    tasks.push_back(targets.back());
  }
  const Labels labels = {.throughput = train_.throughput, .tasks = tasks, .targets = targets};
  ASSERT_THAT(model->Update(train_.features, labels), IsOk());
  for (const double score : Scores(*model, held_out_.features)) EXPECT_TRUE(std::isfinite(score));
  HONE_ASSERT_OK_AND_ASSIGN(const std::string bytes, model->Save());
  const auto loaded = Make();
  ASSERT_THAT(loaded->Load(bytes), IsOk());
  EXPECT_EQ(Scores(*loaded, held_out_.features), Scores(*model, held_out_.features));
  targets[5] = -1;
  const auto trained = Trained();
  ExpectRefused(*trained, trained->Update(train_.features, labels), "the target of candidate 5");
}

// A model either rejects the name of another feature set or saves it in its file. A model that
// reads its own set refuses to load that file.
TEST_P(CostModelConformanceTest, UsesTheRequestedFeatureSetOrRejectsIt) {
  const auto other = CreateCostModel(GetParam(), {.seed = 7, .feature_set = "curve-fix"});
  if (!other.ok()) {
    EXPECT_THAT(other, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("curve-fix")));
    return;
  }
  EXPECT_EQ((*other)->feature_set(), "curve-fix");
  ASSERT_THAT((*other)->Update(train_.features, train_.throughput), IsOk());
  ExpectRefused(*Trained(), Make()->Load(*(*other)->Save()), "feature set 'curve-fix'");
}

INSTANTIATE_TEST_SUITE_P(All, CostModelConformanceTest, testing::ValuesIn(CostModelNames()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hone::cost_model

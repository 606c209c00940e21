// The draft as a cost model, and the trees on top of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/base/rng.h"
#include "nlohmann/json.hpp"
#include "server/tuner/cost_model/draft_weights.h"
#include "server/tuner/cost_model/metric.h"
#include "server/tuner/cost_model/model_file.h"
#include "server/tuner/cost_model/models.h"
#include "server/tuner/cost_model/registry.h"
#include "server/tuner/feature/feature_set.h"
#include "tests/status.h"

namespace hone::cost_model {
namespace {

using ::testing::HasSubstr;

// Candidates of several tasks with random parts of a CPU. `columns`: those of the parts are the
// last.
struct Parts {
  FeatureMatrix features;
  std::vector<int32_t> tasks;
  std::vector<double> throughput;
};

Parts MakeParts(uint64_t seed, int tasks, int per_task, int columns, const DraftWeights& machine) {
  Parts parts{.features = {.columns = columns}};
  Rng rng(seed);
  for (int t = 0; t < tasks; ++t) {
    const int first = parts.features.candidates();
    const double size = std::exp2(10 + 10 * rng.Uniform());
    for (int i = 0; i < per_task; ++i) {
      std::vector<float> rows;
      const int statements = 1 + static_cast<int>(rng.Below(3));
      for (int s = 0; s < statements; ++s) {
        for (int c = 0; c < columns - kDraftColumns; ++c)
          rows.push_back(static_cast<float>(rng.Below(8)));
        for (int part = 0; part < kCpuEnd; ++part) {
          const double value = size * std::exp2(-8 * rng.Uniform());
          rows.push_back(part == kMemoryJumpPart ? static_cast<float>(rng.Uniform())
                                                 : static_cast<float>(value));
        }
        rows.resize(rows.size() + kDraftColumns - kCpuEnd, 0.0f);
      }
      parts.features.Append(rows, statements);
      parts.tasks.push_back(t);
    }
    FeatureMatrix draft{.columns = kDraftColumns};
    double least = 1e300;
    std::vector<double> cycles;
    for (int i = first; i < first + per_task; ++i) {
      draft = {.columns = kDraftColumns};
      std::vector<float> rows;
      for (int r = parts.features.row_begin[i]; r < parts.features.row_begin[i + 1]; ++r) {
        const auto row = parts.features.row(r).subspan(columns - kDraftColumns);
        rows.insert(rows.end(), row.begin(), row.end());
      }
      draft.Append(rows, static_cast<int>(rows.size() / kDraftColumns));
      cycles.push_back(machine.Cycles(draft, 0));
      least = std::min(least, cycles.back());
    }
    for (const double each : cycles) parts.throughput.push_back(least / each);
  }
  return parts;
}

double Accuracy(const CostModel& model, const Parts& parts) {
  const Prediction prediction = *model.Predict(parts.features);
  double sum = 0;
  const int tasks = parts.tasks.back() + 1;
  const size_t per_task = parts.tasks.size() / tasks;
  for (int t = 0; t < tasks; ++t) {
    sum += PairwiseAccuracy(absl::MakeConstSpan(prediction.mean).subspan(t * per_task, per_task),
                            absl::MakeConstSpan(parts.throughput).subspan(t * per_task, per_task));
  }
  return sum / tasks;
}

TEST(DraftModelTest, PartsAreTheColumnsOfTheFeatureSet) {
  const auto& names = (*feature::FindFeatureSet("draft"))->ColumnNames();
  ASSERT_EQ(names.size(), static_cast<size_t>(kDraftColumns));
  for (int part = 0; part < kDraftColumns; ++part) EXPECT_EQ(names[part], DraftPartName(part));
}

// A machine on which forks and lines of L3 cost four times what the presets say.
TEST(DraftModelTest, LearnsTheConstantsOfAMachine) {
  DraftWeights machine;
  machine.factors[kForkPart] = 4;
  machine.factors[kL3Part] = 4;
  machine.factors[kComputePart] = 0.5;
  const auto model = *CreateCostModel("draft", {});
  const Parts train = MakeParts(1, 12, 60, kDraftColumns, machine);
  const Parts unseen = MakeParts(2, 6, 60, kDraftColumns, machine);
  const double before = Accuracy(*model, unseen);
  ASSERT_THAT(model->Update(train.features, Labels{train.throughput, train.tasks}), IsOk());
  const double after = Accuracy(*model, unseen);
  std::printf("%.3f of pairs before, %.3f after\n", before, after);
  EXPECT_LT(before, 0.93);
  EXPECT_GT(after, 0.95);
}

TEST(DraftModelTest, KeepsThePresetsOfAMachineThatHasThem) {
  const Parts train = MakeParts(1, 8, 40, kDraftColumns, DraftWeights());
  const DraftWeights fitted =
      DraftWeights::Fit(train.features, Labels{train.throughput, train.tasks});
  for (int part = 0; part < kDraftWeights; ++part)
    EXPECT_NEAR(std::log2(fitted.factors[part]), 0, 0.2) << DraftPartName(part);
}

TEST(DraftModelTest, RefusesAbsurdConstants) {
  const Parts train = MakeParts(1, 2, 20, kDraftColumns, DraftWeights());
  DraftWeights weights;
  weights.factors[kL2Part] = 1000;
  ByteWriter writer;
  weights.Serialize(writer);
  const std::string bytes = std::move(writer).Finish();
  ByteReader reader(bytes);
  EXPECT_THAT(weights.Parse(reader),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("factor of l2 is 1000")));
}

// A machine on which a property that is not in the draft makes candidates slower.
Parts MakeResidualParts(uint64_t seed, int tasks, int candidates) {
  Parts parts = MakeParts(seed, tasks, candidates, kResidualColumns, DraftWeights());
  for (int i = 0; i < parts.features.candidates(); ++i) {
    const auto row = parts.features.row(parts.features.row_begin[i]);
    if (row[3] >= 4) parts.throughput[i] /= 4;
  }
  return parts;
}

absl::Status Learn(CostModel& model, const Parts& parts) {
  return model.Update(parts.features, Labels{parts.throughput, parts.tasks});
}

TEST(ResidualModelTest, LearnsWhatTheDraftDoesNotKnow) {
  const Parts unseen = MakeResidualParts(2, 4, 60);
  const auto model = *CreateCostModel("residual", {});
  const double before = Accuracy(*model, unseen);
  ASSERT_THAT(Learn(*model, MakeResidualParts(1, 12, 150)), IsOk());
  const double after = Accuracy(*model, unseen);
  std::printf("%.3f of pairs before, %.3f after\n", before, after);
  EXPECT_GT(after, before + 0.05);
}

// With one task, nothing can be learned; but the task can tell that a model of a machine like this
// is better than the constants.
TEST(ResidualModelTest, TakesTheModelOfASimilarMachineUntilItHasLearned) {
  const auto other = *CreateCostModel("residual", {});
  ASSERT_THAT(Learn(*other, MakeResidualParts(1, 12, 150)), IsOk());
  const std::string bytes = *other->Save();
  const Parts first = MakeResidualParts(3, 1, 60), unseen = MakeResidualParts(2, 4, 60);
  const auto model = *CreateCostModel("residual", {.foreign = {"not a model", bytes}});
  ASSERT_THAT(Learn(*model, first), IsOk());
  EXPECT_THAT(model->Summary(), HasSubstr("\"is_foreign\":true"));
  EXPECT_DOUBLE_EQ(Accuracy(*model, unseen), Accuracy(*other, unseen));
  EXPECT_EQ(*model->Save(), bytes);
}

TEST(ResidualModelTest, LeavesAModelOfAnUnlikeMachine) {
  const auto other = *CreateCostModel("residual", {});
  ASSERT_THAT(Learn(*other, MakeResidualParts(1, 12, 150)), IsOk());
  const auto model = *CreateCostModel("residual", {.foreign = {*other->Save()}});
  const Parts like_presets = MakeParts(3, 1, 60, kResidualColumns, DraftWeights());
  ASSERT_THAT(Learn(*model, like_presets), IsOk());
  EXPECT_THAT(model->Summary(), HasSubstr("\"is_foreign\":false"));
}

// With few tasks, trees are not used; what they would gain does not pay for a draft without them.
TEST(ResidualModelTest, AFittedDraftMustPayByItself) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const auto model = *CreateCostModel("residual", {});
    ASSERT_THAT(Learn(*model, MakeResidualParts(seed, 3, 150)), IsOk());
    const auto summary = nlohmann::json::parse(model->Summary());
    EXPECT_EQ(summary["share_of_trees"], 0);
    EXPECT_LT(summary["loss_with_trees"], 0.98 * summary["loss_of_presets"].get<double>());
    const bool pays = summary["loss_of_draft"] < 0.98 * summary["loss_of_presets"].get<double>();
    EXPECT_EQ(ReadModelHeader(*model->Save())->columns > 0, pays) << summary;
  }
}

TEST(ResidualModelTest, ATrainingEndsWhenItsCallerWants) {
  int rounds = 0;
  const auto model = *CreateCostModel(
      "residual",
      {.pause = [&] { return ++rounds < 5 ? absl::OkStatus() : absl::CancelledError("enough"); }});
  EXPECT_THAT(Learn(*model, MakeResidualParts(1, 12, 50)),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("enough")));
  EXPECT_EQ(rounds, 5);
}

}  // namespace
}  // namespace hone::cost_model

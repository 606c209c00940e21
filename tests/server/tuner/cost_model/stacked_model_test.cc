#include "server/tuner/cost_model/stacked_model.h"

#include <gtest/gtest.h>

#include "tests/status.h"

namespace hone::cost_model {
namespace {

// Reads one column. Once trained, the score is `slope` times the value.
class LineModel final : public CostModel {
 public:
  explicit LineModel(double slope) : slope_(slope) {}
  absl::string_view name() const override { return "line"; }
  absl::string_view feature_set() const override { return "column"; }
  absl::Status Update(const FeatureMatrix& features, absl::Span<const double>) override {
    trained_ = features.candidates();
    return absl::OkStatus();
  }
  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    Prediction prediction;
    for (const float value : features.values)
      prediction.mean.push_back(trained_ > 0 ? slope_ * value : 0);
    return prediction;
  }
  absl::StatusOr<std::string> Save() const override { return std::string(trained_, 'x'); }
  absl::Status Load(absl::string_view bytes) override {
    trained_ = static_cast<int>(bytes.size());
    return absl::OkStatus();
  }

 private:
  const double slope_;
  int trained_ = 0;
};

FeatureMatrix Column(int candidates, float value) {
  FeatureMatrix matrix{.columns = 1};
  for (int i = 0; i < candidates; ++i) matrix.Append({value}, 1);
  return matrix;
}

std::unique_ptr<CostModel> Stacked() {
  auto related = std::make_shared<LineModel>(1.0);
  EXPECT_THAT(related->Update(Column(5, 1), {}), IsOk());
  return MakeStackedModel(std::make_unique<LineModel>(3.0), related);
}

double Score(const CostModel& model) { return model.Predict(Column(1, 1))->mean[0]; }

TEST(StackedModel, RelatedModelFadesWithResults) {
  const auto model = Stacked();
  EXPECT_EQ(model->name(), "line");
  EXPECT_EQ(model->feature_set(), "column");
  EXPECT_DOUBLE_EQ(Score(*model), 1) << "only the related model is used before the first result";
  const auto after = [&](int results) {
    EXPECT_THAT(model->Update(Column(results, 1), std::vector<double>(results, 1)), IsOk());
    return Score(*model);
  };
  EXPECT_DOUBLE_EQ(after(64), 2) << "both models have equal weight";
  EXPECT_DOUBLE_EQ(after(128), 2.5);
  EXPECT_GT(TransferWeight(276), 0);
  EXPECT_EQ(TransferWeight(277), 0);
  EXPECT_DOUBLE_EQ(after(277), 3);
}

TEST(StackedModel, SavesOwnAndRelatedModel) {
  const auto model = Stacked(), other = Stacked();
  ASSERT_THAT(model->Update(Column(64, 1), std::vector<double>(64, 1)), IsOk());
  ASSERT_THAT(other->Load(*model->Save()), IsOk());
  EXPECT_DOUBLE_EQ(Score(*other), Score(*model));
  EXPECT_THAT(other->Load("line"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(other->Load(*LineModel(1).Save()), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hone::cost_model

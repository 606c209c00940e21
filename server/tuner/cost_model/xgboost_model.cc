#include "common/base/status_macros.h"
#include "server/tuner/cost_model/models.h"
#include "server/tuner/cost_model/xgboost_booster.h"

namespace hone::cost_model {
namespace {

class XgboostPredictor final : public Predictor {
 public:
  explicit XgboostPredictor(const CostModelOptions& options) : options_(options) {}

  absl::Status Train(const FeatureMatrix& features, const Labels& labels) override {
    HONE_ASSIGN_OR_RETURN(forest_, TrainForest(features, labels.throughput, {}, options_));
    return absl::OkStatus();
  }

  int columns() const override { return forest_.columns(); }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    return Prediction{.mean = ForestScores(forest_, features)};
  }

  void Serialize(ByteWriter& writer) const override { forest_.Serialize(writer); }

  absl::Status Parse(ByteReader& reader) override {
    HONE_ASSIGN_OR_RETURN(forest_, FlatForest::Parse(reader));
    return absl::OkStatus();
  }

 private:
  const CostModelOptions options_;
  FlatForest forest_;  // without columns: untrained
};

}  // namespace

constexpr ModelKind kXgboostModel = {
    .name = "xgboost", .feature_set = "statement", .make = MakePredictor<XgboostPredictor>};

}  // namespace hone::cost_model

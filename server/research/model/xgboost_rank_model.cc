#include "common/base/status_macros.h"
#include "server/research/model/calibration.h"
#include "server/research/model/models.h"
#include "server/tuner/cost_model/xgboost_booster.h"

namespace hone::cost_model {
namespace {

// Training ends when the recall of a plan of 64 has not risen for 20 rounds.
constexpr ForestOptions kAutoTvm = {.learning_rate = 0.3,
                                    .depth = "3",
                                    .gamma = "0.0001",
                                    .ranks = true,
                                    .max_rounds = 8000,
                                    .patience = 20,
                                    .recall_at = 64};

class XgboostRankPredictor final : public Predictor {
 public:
  explicit XgboostRankPredictor(const CostModelOptions& options) : options_(options) {}

  absl::Status Train(const FeatureMatrix& features, const Labels& labels) override {
    HONE_ASSIGN_OR_RETURN(forest_, TrainForest(features, labels.throughput, kAutoTvm, options_));
    calibration_ = Calibration::Fit(ForestScores(forest_, features), labels.throughput);
    return absl::OkStatus();
  }

  int columns() const override { return forest_.columns(); }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    Prediction prediction{.mean = ForestScores(forest_, features)};
    for (double& mean : prediction.mean) mean = calibration_(mean);
    return prediction;
  }

  void Serialize(ByteWriter& writer) const override {
    calibration_.Serialize(writer);
    forest_.Serialize(writer);
  }

  absl::Status Parse(ByteReader& reader) override {
    HONE_ASSIGN_OR_RETURN(calibration_, Calibration::Parse(reader));
    HONE_ASSIGN_OR_RETURN(forest_, FlatForest::Parse(reader));
    return absl::OkStatus();
  }

 private:
  const CostModelOptions options_;
  FlatForest forest_;  // without columns: untrained
  Calibration calibration_;
};

}  // namespace

constexpr ModelKind kXgboostRankModel = {.name = "xgboost-rank",
                                         .feature_set = "statement",
                                         .make = MakePredictor<XgboostRankPredictor>};

}  // namespace hone::cost_model

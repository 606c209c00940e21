#include "common/base/status_macros.h"
#include "server/tuner/cost_model/calibration.h"
#include "server/tuner/cost_model/models.h"
#include "server/tuner/cost_model/xgboost_training.h"

namespace hone::cost_model {
namespace {

constexpr ForestOptions kAnsor = {};
constexpr ForestOptions kAutoTvm = {
    .learning_rate = 0.3, .depth = "3", .gamma = "0.0001", .ranks = true};

template <const ForestOptions& forest_options>
class XgboostPredictor final : public Predictor {
 public:
  explicit XgboostPredictor(const CostModelOptions& options) : options_(options) {}

  absl::Status Train(const FeatureMatrix& features, absl::Span<const double> throughput) override {
    HONE_ASSIGN_OR_RETURN(forest_, TrainForest(features, throughput, forest_options, options_));
    if (forest_options.ranks)
      calibration_ = Calibration::Fit(ForestScores(forest_, features), throughput);
    return absl::OkStatus();
  }

  int columns() const override { return forest_.columns(); }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    Prediction prediction{.mean = ForestScores(forest_, features)};
    for (double& mean : prediction.mean) mean = calibration_(mean);
    return prediction;
  }

  void Serialize(ByteWriter& writer) const override {
    if (forest_options.ranks) calibration_.Serialize(writer);
    forest_.Serialize(writer);
  }

  absl::Status Parse(ByteReader& reader) override {
    if (forest_options.ranks) {
      HONE_ASSIGN_OR_RETURN(calibration_, Calibration::Parse(reader));
    }
    HONE_ASSIGN_OR_RETURN(forest_, FlatForest::Parse(reader));
    return absl::OkStatus();
  }

 private:
  const CostModelOptions options_;
  FlatForest forest_;        // without columns: untrained
  Calibration calibration_;  // the identity, unless the trees rank
};

}  // namespace

constexpr ModelKind kXgboostModel = {
    .name = "xgboost", .feature_set = "statement", .make = MakePredictor<XgboostPredictor<kAnsor>>};
constexpr ModelKind kXgboostRankModel = {.name = "xgboost-rank",
                                         .feature_set = "statement",
                                         .make = MakePredictor<XgboostPredictor<kAutoTvm>>};

}  // namespace hone::cost_model

#include "server/cost_model/xgboost_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/cost_model/byte_io.h"
#include "server/cost_model/calibration.h"
#include "server/cost_model/flat_forest.h"
#include "server/cost_model/model_file.h"
#include "server/cost_model/validate.h"
#include "server/cost_model/xgboost_training.h"

namespace hone::cost_model {
namespace {

// What differs between the registered models.
struct Variant {
  absl::string_view name;
  ForestOptions forest;
};
constexpr Variant kPackSum = {"xgboost", {}};  // Ansor's
constexpr Variant kRank = {                    // AutoTVM's
    "xgboost-rank",
    {.learning_rate = 0.3, .depth = "3", .gamma = "0.0001", .ranks = true}};

class XgboostModel final : public CostModel {
 public:
  XgboostModel(const Variant& variant, const CostModelOptions& options)
      : variant_(variant),
        options_(options),
        feature_set_(options.feature_set.empty() ? "statement" : options.feature_set) {}

  absl::string_view name() const override { return variant_.name; }
  absl::string_view feature_set() const override { return feature_set_; }

  absl::Status Update(const FeatureMatrix& features, absl::Span<const double> throughput) override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    HONE_RETURN_IF_ERROR(ValidateThroughput(features, throughput));
    if (features.candidates() == 0) {
      forest_ = FlatForest();
      calibration_ = Calibration();
      return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(forest_, TrainForest(features, throughput, variant_.forest, options_));
    if (variant_.forest.ranks)
      calibration_ = Calibration::Fit(ForestScores(forest_, features), throughput);
    return absl::OkStatus();
  }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    Prediction prediction;
    if (forest_.columns() == 0) {
      prediction.mean.assign(features.candidates(), 0.0);
      return prediction;
    }
    HONE_RETURN_IF_ERROR(ValidateColumns(features, forest_.columns()));
    prediction.mean = ForestScores(forest_, features);
    if (variant_.forest.ranks) {
      for (double& mean : prediction.mean) mean = calibration_(mean);
    }
    return prediction;
  }

  absl::StatusOr<std::vector<double>> RowScores(const FeatureMatrix& features) const override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    if (forest_.columns() == 0) return std::vector<double>();
    HONE_RETURN_IF_ERROR(ValidateColumns(features, forest_.columns()));
    const std::vector<float> rows = ForestRowScores(forest_, features);
    std::vector<double> scores(rows.begin(), rows.end());
    for (double& score : scores) score *= calibration_.slope;  // 1 unless it ranks
    return scores;
  }

  absl::StatusOr<std::string> Save() const override {
    ByteWriter writer;
    if (variant_.forest.ranks) calibration_.Serialize(writer);
    forest_.Serialize(writer);
    return EncodeModel(Header(forest_.columns()), std::move(writer).Finish());
  }

  absl::Status Load(absl::string_view bytes) override {
    HONE_ASSIGN_OR_RETURN(const ModelFile file, DecodeModel(bytes, Header(0)));
    ByteReader reader(file.payload);
    Calibration calibration;
    if (variant_.forest.ranks) {
      HONE_ASSIGN_OR_RETURN(calibration, Calibration::Parse(reader));
    }
    HONE_ASSIGN_OR_RETURN(FlatForest forest, FlatForest::Parse(reader));
    if (reader.remaining() != 0 || file.header.columns != static_cast<uint32_t>(forest.columns())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "not loaded as a cost model: trees of ", forest.columns(), " columns and ",
          reader.remaining(), " more bytes under a header of ", file.header.columns, " columns"));
    }
    forest_ = std::move(forest);
    calibration_ = calibration;
    return absl::OkStatus();
  }

 private:
  ModelHeader Header(int columns) const {
    return {.name = std::string(variant_.name),
            .version = 1,
            .feature_set = feature_set_,
            .columns = static_cast<uint32_t>(columns)};
  }

  const Variant variant_;
  const CostModelOptions options_;
  const std::string feature_set_;
  FlatForest forest_;  // without columns: has seen nothing
  Calibration calibration_;
};

}  // namespace

std::unique_ptr<CostModel> MakeXgboostModel(const CostModelOptions& options) {
  return std::make_unique<XgboostModel>(kPackSum, options);
}

std::unique_ptr<CostModel> MakeXgboostRankModel(const CostModelOptions& options) {
  return std::make_unique<XgboostModel>(kRank, options);
}

}  // namespace hone::cost_model

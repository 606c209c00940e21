#include "server/cost_model/xgboost_model.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/cost_model/byte_io.h"
#include "server/cost_model/flat_forest.h"
#include "server/cost_model/model_file.h"
#include "server/cost_model/pack_sum.h"
#include "server/cost_model/validate.h"
#include "server/cost_model/xgboost_booster.h"
#include "server/cost_model/xgboost_json.h"

namespace hone::cost_model {
namespace {

constexpr double kLearningRate = 0.2;
constexpr int kPatience = 50;  // rounds without a smaller training error
// Bounds the time of an Update: the error stops falling at about round 20, because gamma forbids
// small gains.
constexpr int kMaxRounds = 100;
// Time grows with the bins, and statement features have few distinct values: 64 bins cost half of
// 256 there.
constexpr int kBins = 64;

XgboostBooster::Parameters BoosterParameters(const CostModelOptions& options) {
  return {{"tree_method", "hist"},
          {"max_bin", absl::StrCat(kBins)},
          {"max_depth", "10"},
          {"eta", absl::StrCat(kLearningRate)},
          {"gamma", "0.001"},
          {"min_child_weight", "0"},
          // An empty sum scores 0, so that the score of a program starts at 0 for any number of
          // statements.
          {"base_score", "0"},
          {"nthread", absl::StrCat(options.threads)},
          {"seed", absl::StrCat(options.seed & 0x7fffffff)},
          {"verbosity", "0"}};
}

absl::StatusOr<FlatForest> Train(const FeatureMatrix& features, absl::Span<const double> throughput,
                                 const CostModelOptions& options) {
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<XgboostBooster> booster,
      XgboostBooster::Create(features.values, features.columns, BoosterParameters(options)));
  PackSum objective(features.row_begin, throughput, kLearningRate);
  double least_error = std::numeric_limits<double>::infinity();
  int best_round = 0;
  for (int round = 0;; ++round) {
    HONE_ASSIGN_OR_RETURN(const absl::Span<const float> scores, booster->TrainingScores());
    const double error = objective.Differentiate(scores);
    if (error < least_error) {
      least_error = error;
      best_round = round;
    }
    if (round == kMaxRounds || round - best_round == kPatience) break;
    HONE_RETURN_IF_ERROR(booster->BoostOneRound(objective.gradient(), objective.hessian()));
  }
  HONE_ASSIGN_OR_RETURN(const std::string json, booster->Json());
  return ForestOfXgboostJson(json, features.columns, best_round);
}

class XgboostModel final : public CostModel {
 public:
  explicit XgboostModel(const CostModelOptions& options) : options_(options) {}

  absl::string_view name() const override { return "xgboost"; }
  absl::string_view feature_set() const override { return "statement"; }

  absl::Status Update(const FeatureMatrix& features, absl::Span<const double> throughput) override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    HONE_RETURN_IF_ERROR(ValidateThroughput(features, throughput));
    if (features.candidates() == 0) {
      forest_ = FlatForest();
      return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(forest_, Train(features, throughput, options_));
    return absl::OkStatus();
  }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features));
    Prediction prediction;
    if (forest_.columns() == 0) {
      prediction.mean.assign(features.candidates(), 0.0);
      return prediction;
    }
    if (features.candidates() > 0 && features.columns != forest_.columns()) {
      return absl::InvalidArgumentError(absl::StrCat("rows of ", features.columns,
                                                     " columns, but the model was trained on ",
                                                     forest_.columns()));
    }
    std::vector<float> row_scores(features.rows());
    forest_.Predict(features.values, absl::MakeSpan(row_scores));
    prediction.mean = SumRows(features.row_begin, row_scores);
    return prediction;
  }

  absl::StatusOr<std::string> Save() const override {
    ByteWriter writer;
    forest_.Serialize(writer);
    return EncodeModel(Header(forest_.columns()), std::move(writer).Finish());
  }

  absl::Status Load(absl::string_view bytes) override {
    HONE_ASSIGN_OR_RETURN(const ModelFile file, DecodeModel(bytes, Header(0)));
    ByteReader reader(file.payload);
    HONE_ASSIGN_OR_RETURN(FlatForest forest, FlatForest::Parse(reader));
    if (reader.remaining() != 0 || file.header.columns != static_cast<uint32_t>(forest.columns())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "not loaded as a cost model: trees of ", forest.columns(), " columns and ",
          reader.remaining(), " more bytes under a header of ", file.header.columns, " columns"));
    }
    forest_ = std::move(forest);
    return absl::OkStatus();
  }

 private:
  static ModelHeader Header(int columns) {
    return {.name = "xgboost",
            .version = 1,
            .feature_set = "statement",
            .columns = static_cast<uint32_t>(columns)};
  }

  CostModelOptions options_;
  FlatForest forest_;  // without columns: has seen nothing
};

}  // namespace

std::unique_ptr<CostModel> MakeXgboostModel(const CostModelOptions& options) {
  return std::make_unique<XgboostModel>(options);
}

}  // namespace hone::cost_model

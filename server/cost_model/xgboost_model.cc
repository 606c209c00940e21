#include "server/cost_model/xgboost_model.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/cost_model/byte_io.h"
#include "server/cost_model/calibration.h"
#include "server/cost_model/flat_forest.h"
#include "server/cost_model/model_file.h"
#include "server/cost_model/pack_rank.h"
#include "server/cost_model/pack_sum.h"
#include "server/cost_model/validate.h"
#include "server/cost_model/xgboost_booster.h"
#include "server/cost_model/xgboost_json.h"

namespace hone::cost_model {
namespace {

constexpr int kPatience = 50;  // rounds without a smaller training error
// Bounds the time of an Update: the error stops falling at about round 20, because gamma forbids
// small gains.
constexpr int kMaxRounds = 100;
// Time grows with the bins, and statement features have few distinct values: 64 bins cost half of
// 256 there.
constexpr int kBins = 64;

// What differs between the registered models.
struct Variant {
  absl::string_view name;
  double learning_rate;
  absl::string_view depth, gamma, min_child;
  bool ranks;  // learns the order alone
};
constexpr Variant kPackSum = {"xgboost", 0.2, "10", "0.001", "0", false};   // Ansor's
constexpr Variant kRank = {"xgboost-rank", 0.3, "3", "0.0001", "0", true};  // AutoTVM's

XgboostBooster::Parameters BoosterParameters(const Variant& variant,
                                             const CostModelOptions& options) {
  return {{"tree_method", "hist"},
          {"max_bin", absl::StrCat(kBins)},
          {"max_depth", std::string(variant.depth)},
          {"eta", absl::StrCat(variant.learning_rate)},
          {"gamma", std::string(variant.gamma)},
          {"min_child_weight", std::string(variant.min_child)},
          // An empty sum scores 0, so that the score of a program starts at 0 for any number of
          // statements.
          {"base_score", "0"},
          {"nthread", absl::StrCat(options.threads)},
          {"seed", absl::StrCat(options.seed & 0x7fffffff)},
          {"verbosity", "0"}};
}

std::unique_ptr<PackObjective> MakeObjective(const Variant& variant, const FeatureMatrix& features,
                                             absl::Span<const double> throughput, uint64_t seed) {
  if (variant.ranks) {
    return std::make_unique<PackRank>(features.row_begin, throughput, variant.learning_rate, seed);
  }
  return std::make_unique<PackSum>(features.row_begin, throughput, variant.learning_rate);
}

absl::StatusOr<FlatForest> Train(const FeatureMatrix& features, absl::Span<const double> throughput,
                                 const Variant& variant, const CostModelOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<XgboostBooster> booster,
                        XgboostBooster::Create(features.values, features.columns,
                                               BoosterParameters(variant, options)));
  const std::unique_ptr<PackObjective> objective =
      MakeObjective(variant, features, throughput, options.seed);
  double least_error = std::numeric_limits<double>::infinity();
  int best_round = 0;
  for (int round = 0;; ++round) {
    HONE_ASSIGN_OR_RETURN(const absl::Span<const float> scores, booster->TrainingScores());
    const double error = objective->Differentiate(scores);
    if (error < least_error) {
      least_error = error;
      best_round = round;
    }
    if (round == kMaxRounds || round - best_round == kPatience) break;
    HONE_RETURN_IF_ERROR(booster->BoostOneRound(objective->gradient(), objective->hessian()));
  }
  HONE_ASSIGN_OR_RETURN(const std::string json, booster->Json());
  return ForestOfXgboostJson(json, features.columns, best_round);
}

std::vector<double> Scores(const FlatForest& forest, const FeatureMatrix& features) {
  std::vector<float> row_scores(features.rows());
  forest.Predict(features.values, absl::MakeSpan(row_scores));
  return SumRows(features.row_begin, row_scores);
}

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
    HONE_ASSIGN_OR_RETURN(forest_, Train(features, throughput, variant_, options_));
    if (variant_.ranks) calibration_ = Calibration::Fit(Scores(forest_, features), throughput);
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
    prediction.mean = Scores(forest_, features);
    if (variant_.ranks) {
      for (double& mean : prediction.mean) mean = calibration_(mean);
    }
    return prediction;
  }

  absl::StatusOr<std::string> Save() const override {
    ByteWriter writer;
    if (variant_.ranks) calibration_.Serialize(writer);
    forest_.Serialize(writer);
    return EncodeModel(Header(forest_.columns()), std::move(writer).Finish());
  }

  absl::Status Load(absl::string_view bytes) override {
    HONE_ASSIGN_OR_RETURN(const ModelFile file, DecodeModel(bytes, Header(0)));
    ByteReader reader(file.payload);
    Calibration calibration;
    if (variant_.ranks) {
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

#include "server/tuner/cost_model/xgboost_training.h"

#include <limits>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/host_share.h"
#include "common/base/status_macros.h"
#include "server/tuner/cost_model/pack_objective.h"
#include "server/tuner/cost_model/xgboost_booster.h"

namespace hone::cost_model {
namespace {

// Time grows with the number of bins. Statement features have few distinct values, and 64 bins take
// half of the time of 256.
constexpr int kBins = 64;

XgboostBooster::Parameters BoosterParameters(const ForestOptions& forest,
                                             const CostModelOptions& options) {
  return {{"tree_method", "hist"},
          {"max_bin", absl::StrCat(kBins)},
          {"max_depth", std::string(forest.depth)},
          {"eta", absl::StrCat(forest.learning_rate)},
          {"gamma", std::string(forest.gamma)},
          {"min_child_weight", std::string(forest.min_child)},
          // The score of a program without trees must be 0 for any number of statements.
          {"base_score", "0"},
          {"nthread", absl::StrCat(options.threads)},
          {"seed", absl::StrCat(options.seed & 0x7fffffff)},
          {"verbosity", "0"}};
}

std::unique_ptr<PackObjective> MakeObjective(const ForestOptions& forest,
                                             const FeatureMatrix& features,
                                             absl::Span<const double> throughput, uint64_t seed) {
  if (forest.ranks) {
    return std::make_unique<PackRank>(features.row_begin, throughput, forest.learning_rate, seed);
  }
  return std::make_unique<PackSum>(features.row_begin, throughput, forest.learning_rate);
}

}  // namespace

absl::StatusOr<FlatForest> TrainForest(const FeatureMatrix& features,
                                       absl::Span<const double> throughput,
                                       const ForestOptions& forest,
                                       const CostModelOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<XgboostBooster> booster,
                        XgboostBooster::Create(features.values, features.columns,
                                               BoosterParameters(forest, options)));
  const std::unique_ptr<PackObjective> objective =
      MakeObjective(forest, features, throughput, options.seed);
  double least_error = std::numeric_limits<double>::infinity();
  int best_round = 0;
  for (int round = 0;; ++round) {
    HONE_ASSIGN_OR_RETURN(const absl::Span<const float> scores, booster->TrainingScores());
    const double error = objective->Differentiate(scores);
    if (error < least_error) {
      least_error = error;
      best_round = round;
    }
    YieldToTimers();
    if (round == forest.max_rounds || round - best_round == forest.patience) break;
    HONE_RETURN_IF_ERROR(booster->BoostOneRound(objective->gradient(), objective->hessian()));
  }
  HONE_ASSIGN_OR_RETURN(const std::string json, booster->Json());
  return ForestOfXgboostJson(json, features.columns, best_round);
}

std::vector<double> ForestScores(const FlatForest& forest, const FeatureMatrix& features) {
  std::vector<float> row_scores(features.rows());
  forest.Predict(features.values, absl::MakeSpan(row_scores));
  return SumRows(features.row_begin, row_scores);
}

}  // namespace hone::cost_model

#ifndef HONE_SERVER_TUNER_COST_MODEL_XGBOOST_TRAINING_H_
#define HONE_SERVER_TUNER_COST_MODEL_XGBOOST_TRAINING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/cost_model/flat_forest.h"

namespace hone::cost_model {

// How trees are trained: XGBoost's parameters under its names, and when training ends.
struct ForestOptions {
  double learning_rate = 0.2;
  absl::string_view depth = "10", gamma = "0.001", min_child = "0";
  bool ranks = false;  // learn only the order (PackRank) instead of the sums (PackSum)
  // Bounds the time of an Update. The error stops decreasing at about round 20, because gamma
  // forbids small gains.
  int max_rounds = 100;
  int patience = 50;  // rounds without a smaller training error
};

// Trains trees until the training error stops decreasing, and keeps those up to the round with the
// least training error. REQUIRES: valid rows and labels, and at least one candidate.
// Internal: an error of the library.
absl::StatusOr<FlatForest> TrainForest(const FeatureMatrix& features,
                                       absl::Span<const double> throughput,
                                       const ForestOptions& forest,
                                       const CostModelOptions& options);

// Returns the score of every candidate, the sum of the scores of its rows.
std::vector<double> ForestScores(const FlatForest& forest, const FeatureMatrix& features);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_XGBOOST_TRAINING_H_

#ifndef HONE_SERVER_COST_MODEL_XGBOOST_TRAINING_H_
#define HONE_SERVER_COST_MODEL_XGBOOST_TRAINING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/cost_model/cost_model.h"
#include "server/cost_model/flat_forest.h"

namespace hone::cost_model {

// How trees are grown: the parameters of XGBoost by its names, and where it ends.
struct ForestOptions {
  double learning_rate = 0.2;
  absl::string_view depth = "10", gamma = "0.001", min_child = "0";
  bool ranks = false;  // learns the order alone (PackRank), else the sums (PackSum)
  // Bounds the time of an Update: the error stops falling at about round 20, because gamma forbids
  // small gains.
  int max_rounds = 100;
  int patience = 50;  // rounds without a smaller training error
};

// Boosts trees on the candidates until nothing more is gained, and keeps those of the round with
// the least training error. REQUIRES valid rows and labels (validate.h), at least one candidate.
// Internal: errors of the library.
absl::StatusOr<FlatForest> TrainForest(const FeatureMatrix& features,
                                       absl::Span<const double> throughput,
                                       const ForestOptions& forest,
                                       const CostModelOptions& options);

// The score of every row.
std::vector<float> ForestRowScores(const FlatForest& forest, const FeatureMatrix& features);
// The score of every candidate: the sum of its rows'.
std::vector<double> ForestScores(const FlatForest& forest, const FeatureMatrix& features);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_XGBOOST_TRAINING_H_

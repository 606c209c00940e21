#ifndef HONE_SERVER_TUNER_COST_MODEL_XGBOOST_BOOSTER_H_
#define HONE_SERVER_TUNER_COST_MODEL_XGBOOST_BOOSTER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/cost_model/flat_forest.h"

namespace hone::cost_model {

// A training of XGBoost with a custom objective. Only this file calls XGBoost's C API. Errors of
// the library become Internal with its message. Used by one thread at a time.
class XgboostBooster {
 public:
  using Parameters = std::vector<std::pair<std::string, std::string>>;

  // Copies the rows (row-major, `columns` each). Invalid parameters are reported here or in the
  // first round.
  static absl::StatusOr<std::unique_ptr<XgboostBooster>> Create(absl::Span<const float> rows,
                                                                int columns,
                                                                const Parameters& parameters);
  ~XgboostBooster();
  XgboostBooster(const XgboostBooster&) = delete;
  XgboostBooster& operator=(const XgboostBooster&) = delete;

  // Returns the current scores of the training rows. Valid until the next call.
  absl::StatusOr<absl::Span<const float>> TrainingScores();

  // Adds one tree for these derivatives, one per row.
  absl::Status BoostOneRound(absl::Span<float> gradient, absl::Span<float> hessian);

  // Returns the whole model in XGBoost's JSON form.
  absl::StatusOr<std::string> Json();

 private:
  XgboostBooster() = default;

  void* matrix_ = nullptr;
  void* booster_ = nullptr;
};

// Returns the first `max_trees` trees of a model in XGBoost's JSON form (1.7: gbtree, numeric
// splits, one output), without its base score. Internal: not such a model; the message says what is
// wrong.
absl::StatusOr<FlatForest> ForestOfXgboostJson(absl::string_view json, int columns, int max_trees);

// How trees are trained: XGBoost's parameters under its names, and when training ends.
struct ForestOptions {
  double learning_rate = 0.2;
  absl::string_view depth = "10", gamma = "0.001", min_child = "0";
  bool ranks = false;  // learn only the order (PackRank) instead of the sums (PackSum)
  // Bounds the time of an Update. The error stops decreasing at about round 20, because gamma
  // forbids small gains.
  int max_rounds = 100;
  int patience = 50;  // rounds without a smaller training error
  // If positive, the training error is 1 − AverageRecall of this many candidates (metric.h), from
  // the first tree on.
  int recall_at = 0;
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

#endif  // HONE_SERVER_TUNER_COST_MODEL_XGBOOST_BOOSTER_H_

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

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_XGBOOST_BOOSTER_H_

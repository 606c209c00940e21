#ifndef HONE_SERVER_COST_MODEL_XGBOOST_JSON_H_
#define HONE_SERVER_COST_MODEL_XGBOOST_JSON_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/cost_model/flat_forest.h"

namespace hone::cost_model {

// The first `max_trees` trees of a model in XGBoost's JSON form (1.7: gbtree, numeric splits, one
// output), without its base score. Internal: not such a model; the message says what is missing.
absl::StatusOr<FlatForest> ForestOfXgboostJson(absl::string_view json, int columns, int max_trees);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_XGBOOST_JSON_H_

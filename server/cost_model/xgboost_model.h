#ifndef HONE_SERVER_COST_MODEL_XGBOOST_MODEL_H_
#define HONE_SERVER_COST_MODEL_XGBOOST_MODEL_H_

#include <memory>

#include "server/cost_model/cost_model.h"

namespace hone::cost_model {

// Ansor's model: gradient-boosted trees over the rows of statement features, trained with the
// pack-sum objective (pack_sum.h) in XGBoost, evaluated in a flat forest (flat_forest.h). Every
// Update trains from the beginning; the model of the round with the least training error stays.
std::unique_ptr<CostModel> MakeXgboostModel(const CostModelOptions& options);

// AutoTVM's shallow trees (Chen et al., NeurIPS 2018) with the rank objective (pack_rank.h)
// instead: learns which of two candidates is better, and nothing of how much. A line
// (calibration.h) makes throughputs of its scores. min_child_weight is 0 and not AutoTVM's 1,
// because the hessian of a candidate that has its place goes to 0.
std::unique_ptr<CostModel> MakeXgboostRankModel(const CostModelOptions& options);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_XGBOOST_MODEL_H_

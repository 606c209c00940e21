#ifndef HONE_SERVER_TUNER_COST_MODEL_STACKED_MODEL_H_
#define HONE_SERVER_TUNER_COST_MODEL_STACKED_MODEL_H_

#include <memory>

#include "server/tuner/cost_model/cost_model.h"

namespace hone::cost_model {

// Returns the weight of a model of other tasks when `results` results of this task are known:
// 2^(−results/64), or 0 if that is below 0.05. This is the schedule of AutoTVM's transfer learning.
double TransferWeight(size_t results);

// Combines a task's own model with a model of related tasks: a score is the weighted mean of their
// scores. Both score relative to the best of a task, so they need no common unit. While the own
// model is untrained, only the related model is used. This model is not registered; tasks make it.
//
// Update trains the own model and sets the weight from the number of candidates. Save and Load
// store only the own model. REQUIRES: both models have the same name and feature set.
std::unique_ptr<CostModel> MakeStackedModel(std::unique_ptr<CostModel> own,
                                            std::shared_ptr<const CostModel> related);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_STACKED_MODEL_H_

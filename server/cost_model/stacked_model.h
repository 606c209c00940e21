#ifndef HONE_SERVER_COST_MODEL_STACKED_MODEL_H_
#define HONE_SERVER_COST_MODEL_STACKED_MODEL_H_

#include <memory>

#include "server/cost_model/cost_model.h"

namespace hone::cost_model {

// What a model of other tasks still counts when `results` of this task are known: 2^(−results/64),
// and nothing below 0.05 – the schedule of AutoTVM's transfer learning.
double TransferWeight(size_t results);

// A task's own model and one that was trained on related tasks, of one kind: the weighted mean of
// their scores. Both score relative to the best of a task, so they need no common unit. While the
// own one has seen nothing the other one answers alone. It is not registered: tasks make it.
//
// Update trains the own model and sets the weight by the number of candidates; Save and Load carry
// the own model alone. REQUIRES models of one name and feature set.
std::unique_ptr<CostModel> MakeStackedModel(std::unique_ptr<CostModel> own,
                                            std::shared_ptr<const CostModel> related);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_STACKED_MODEL_H_

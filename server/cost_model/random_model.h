#ifndef HONE_SERVER_COST_MODEL_RANDOM_MODEL_H_
#define HONE_SERVER_COST_MODEL_RANDOM_MODEL_H_

#include <memory>

#include "server/cost_model/cost_model.h"

namespace hone::cost_model {

// The baseline that every learned model must beat: scores drawn uniformly from [0, 1). They are a
// pure function of the seed, the number of candidates of the last Update, a candidate's position in
// the call and its rows (if there are any): they change with every round of tuning, and replaying
// the calls repeats them.
std::unique_ptr<CostModel> MakeRandomModel(const CostModelOptions& options);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_RANDOM_MODEL_H_

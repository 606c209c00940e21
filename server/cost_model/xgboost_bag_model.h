#ifndef HONE_SERVER_COST_MODEL_XGBOOST_BAG_MODEL_H_
#define HONE_SERVER_COST_MODEL_XGBOOST_BAG_MODEL_H_

#include <memory>

#include "server/cost_model/cost_model.h"

namespace hone::cost_model {

// Ansor's trees with a spread, for about the time of one forest: a bag of four short ones (Breiman,
// "Bagging predictors", 1996), each grown on a random 63 % of the candidates, which is what a
// bootstrap sample has of different ones. The mean is theirs. The spread is the deviation among
// them and, added in square, what the errors on left-out candidates show beyond it: agreement of
// trees that saw nearly the same says little about noise.
std::unique_ptr<CostModel> MakeXgboostBagModel(const CostModelOptions& options);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_XGBOOST_BAG_MODEL_H_

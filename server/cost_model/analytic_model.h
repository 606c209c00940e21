#ifndef HONE_SERVER_COST_MODEL_ANALYTIC_MODEL_H_
#define HONE_SERVER_COST_MODEL_ANALYTIC_MODEL_H_

#include <memory>

#include "server/cost_model/cost_model.h"

namespace hone::cost_model {

// Before it has seen anything, the model is the draft: it answers 1 / the cycles that the analytic
// features estimate. Trained, it answers log2 throughput as a linear combination of these features,
// which are logarithms: a product of powers of what a machine model computes. Fitted by least
// squares with Huber's loss, so that a disturbed measurement weighs little, and pulled towards the
// prior that the estimate is right: good from the first few candidates, and never far from what can
// be computed. Reads "analytic" only.
std::unique_ptr<CostModel> MakeAnalyticModel(const CostModelOptions& options);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_ANALYTIC_MODEL_H_

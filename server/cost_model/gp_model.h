#ifndef HONE_SERVER_COST_MODEL_GP_MODEL_H_
#define HONE_SERVER_COST_MODEL_GP_MODEL_H_

#include <memory>

#include "server/cost_model/cost_model.h"

namespace hone::cost_model {

struct GpOptions {
  // Candidates that it is trained on at most: time grows with the third power. Of more, the better
  // half of that many and every so-many-th of the rest.
  int cap = 256;
  // Candidates that its parameters are chosen on.
  int parameter_cap = 128;
};

// An exact Gaussian process (gaussian_process.h) from a candidate's pooled rows (the mean of each
// standardized column) to its throughput; a model with a spread, the posterior deviation scaled by
// what the process gets wrong where it is not shown (spread_scale.h).
// Deterministic without a seed.
std::unique_ptr<CostModel> MakeGpModel(const CostModelOptions& options);
std::unique_ptr<CostModel> MakeGpModel(const CostModelOptions& options, const GpOptions& gp);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_GP_MODEL_H_

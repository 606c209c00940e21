#ifndef HONE_SERVER_COST_MODEL_PUBLISHED_MLP_MODEL_H_
#define HONE_SERVER_COST_MODEL_PUBLISHED_MLP_MODEL_H_

#include <memory>

#include "server/cost_model/cost_model.h"

namespace hone::cost_model {

// How the network is trained. TenSet's width is 256, for millions of records; 64 fits the hundreds
// of one task and a search's patience.
struct MlpOptions {
  int hidden = 64;
  int epochs = 40;
  int least_steps = 200;        // for few candidates
  int batch = 64;               // candidates, one list of the rank loss
  double learning_rate = 2e-3;  // of Adam; falls to nothing over the training
  double weight_decay = 1e-6;
  double largest_gradient = 0.5;  // norm; clipped
};

// TenSet's model (mlp_network.h) with the rank loss (rank_loss.h): standardized rows, Adam, a line
// (calibration.h) that makes throughputs of the scores. Deterministic: the seed draws the weights
// and the order of the candidates.
std::unique_ptr<CostModel> MakeMlpModel(const CostModelOptions& options);
std::unique_ptr<CostModel> MakeMlpModel(const CostModelOptions& options, const MlpOptions& mlp);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_PUBLISHED_MLP_MODEL_H_

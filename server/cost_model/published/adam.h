#ifndef HONE_SERVER_COST_MODEL_PUBLISHED_ADAM_H_
#define HONE_SERVER_COST_MODEL_PUBLISHED_ADAM_H_

#include <vector>

#include "absl/types/span.h"
#include "server/cost_model/dense.h"

namespace hone::cost_model {

// Adam (Kingma and Ba, ICLR 2015) with its usual constants over a fixed list of parameters.
class Adam {
 public:
  Adam(double weight_decay, double largest_gradient)
      : weight_decay_(weight_decay), largest_gradient_(largest_gradient) {}

  // One step. The gradients are scaled down together where their norm is above the largest.
  // REQUIRES the same sizes in every call.
  void Step(absl::Span<Matrix* const> parameters, absl::Span<const Matrix> gradients,
            double learning_rate);

 private:
  const double weight_decay_, largest_gradient_;
  int steps_ = 0;
  std::vector<Matrix> first_, second_;  // moments
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_PUBLISHED_ADAM_H_

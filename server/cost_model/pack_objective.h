#ifndef HONE_SERVER_COST_MODEL_PACK_OBJECTIVE_H_
#define HONE_SERVER_COST_MODEL_PACK_OBJECTIVE_H_

#include "absl/types/span.h"

namespace hone::cost_model {

// What boosted trees over rows are trained for, where a candidate's score is the sum of its rows'.
class PackObjective {
 public:
  virtual ~PackObjective() = default;

  // First and second derivative per row at these row scores, in gradient() and hessian(), and the
  // error that training makes small. REQUIRES one score per row and at least one candidate.
  virtual double Differentiate(absl::Span<const float> row_scores) = 0;

  virtual absl::Span<float> gradient() = 0;
  virtual absl::Span<float> hessian() = 0;
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_PACK_OBJECTIVE_H_

#ifndef HONE_SERVER_TUNER_COST_MODEL_ROBUST_LINE_H_
#define HONE_SERVER_TUNER_COST_MODEL_ROBUST_LINE_H_

#include <vector>

#include "absl/types/span.h"

namespace hone::cost_model {

struct LinearFit {
  double intercept = 0;
  std::vector<double> weights;
};

// Minimizes Σ huber(y - intercept - weights·x) + pull·|weights - prior|² by reweighted least
// squares. Huber's loss becomes linear at 1.345 deviations; the deviation is estimated from the
// median residual. `rows` has prior.size() values per label. REQUIRES: at least one label, pull >
// 0.
LinearFit FitRobustly(absl::Span<const float> rows, absl::Span<const double> labels,
                      absl::Span<const double> prior, double pull);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_ROBUST_LINE_H_

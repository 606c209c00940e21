#ifndef HONE_SERVER_TUNER_COST_MODEL_LINEAR_FIT_H_
#define HONE_SERVER_TUNER_COST_MODEL_LINEAR_FIT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/tuner/cost_model/byte_io.h"

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

// An increasing linear function from scores to throughputs, for models that learn only an order.
struct Calibration {
  double offset = 0;
  double slope = 1;  // > 0

  // Returns the least-squares line of throughput over score. If its slope is less than 0.001,
  // returns the line of that slope through the mean.
  static Calibration Fit(absl::Span<const double> scores, absl::Span<const double> throughput);
  double operator()(double score) const { return offset + slope * score; }

  void Serialize(ByteWriter& writer) const;
  // InvalidArgument: truncated, or not an increasing line.
  static absl::StatusOr<Calibration> Parse(ByteReader& reader);
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_LINEAR_FIT_H_

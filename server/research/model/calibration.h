#ifndef HONE_SERVER_RESEARCH_MODEL_CALIBRATION_H_
#define HONE_SERVER_RESEARCH_MODEL_CALIBRATION_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/tuner/cost_model/byte_io.h"

namespace hone::cost_model {

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

#endif  // HONE_SERVER_RESEARCH_MODEL_CALIBRATION_H_

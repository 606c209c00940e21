#ifndef HONE_SERVER_COST_MODEL_CALIBRATION_H_
#define HONE_SERVER_COST_MODEL_CALIBRATION_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/cost_model/byte_io.h"

namespace hone::cost_model {

// An increasing linear function that converts the scores of a model that learns only an order to
// throughputs.
struct Calibration {
  double offset = 0;
  double slope = 1;  // > 0

  // Returns the least-squares line through the training candidates. If that line does not increase,
  // returns a nearly flat one through their mean.
  static Calibration Fit(absl::Span<const double> scores, absl::Span<const double> throughput);
  double operator()(double score) const { return offset + slope * score; }

  void Serialize(ByteWriter& writer) const;
  // InvalidArgument: truncated, or not an increasing line.
  static absl::StatusOr<Calibration> Parse(ByteReader& reader);
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_CALIBRATION_H_

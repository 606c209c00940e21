#ifndef HONE_SERVER_COST_MODEL_CALIBRATION_H_
#define HONE_SERVER_COST_MODEL_CALIBRATION_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/cost_model/byte_io.h"

namespace hone::cost_model {

// What makes a throughput of the score of a model that only learns an order: an increasing line.
struct Calibration {
  double offset = 0;
  double slope = 1;  // > 0

  // The least squares line through the training candidates; where that is not increasing, a flat
  // one through their mean.
  static Calibration Fit(absl::Span<const double> scores, absl::Span<const double> throughput);
  double operator()(double score) const { return offset + slope * score; }

  void Serialize(ByteWriter& writer) const;
  // InvalidArgument: truncated, or not such a line.
  static absl::StatusOr<Calibration> Parse(ByteReader& reader);
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_CALIBRATION_H_

#include "server/research/model/calibration.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "common/base/status_macros.h"

namespace hone::cost_model {
namespace {

constexpr double kFlat = 1e-3;  // the slope of the nearly flat line; > 0 to keep the order

}  // namespace

Calibration Calibration::Fit(absl::Span<const double> scores, absl::Span<const double> throughput) {
  const auto count = static_cast<double>(scores.size());
  double score_mean = 0, label_mean = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    score_mean += scores[i] / count;
    label_mean += throughput[i] / count;
  }
  double covariance = 0, variance = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    covariance += (scores[i] - score_mean) * (throughput[i] - label_mean);
    variance += (scores[i] - score_mean) * (scores[i] - score_mean);
  }
  Calibration line;
  line.slope = variance > 1e-12 ? std::max(covariance / variance, kFlat) : kFlat;
  line.offset = label_mean - line.slope * score_mean;
  return line;
}

void Calibration::Serialize(ByteWriter& writer) const { writer.Add(offset, slope); }

absl::StatusOr<Calibration> Calibration::Parse(ByteReader& reader) {
  Calibration line;
  HONE_RETURN_IF_ERROR(reader.Read(line.offset, line.slope));
  if (!std::isfinite(line.offset) || !std::isfinite(line.slope) || line.slope <= 0)
    return absl::InvalidArgumentError("the calibration is not an increasing line");
  return line;
}

}  // namespace hone::cost_model

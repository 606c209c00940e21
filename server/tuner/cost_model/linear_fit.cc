#include "server/tuner/cost_model/linear_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "server/tuner/cost_model/dense.h"

namespace hone::cost_model {
namespace {

constexpr int kRounds = 12;
constexpr double kBend = 1.345;  // where Huber's loss becomes linear, in deviations
// The standard deviation of a normal distribution divided by the median of its absolute values.
constexpr double kDeviationPerMedian = 1.4826;
constexpr double kLeastDeviation = 1e-3;  // lower limit, if the line fits almost exactly

double Value(const LinearFit& fit, const float* row) {
  double value = fit.intercept;
  for (size_t c = 0; c < fit.weights.size(); ++c) value += fit.weights[c] * row[c];
  return value;
}

// Minimizes Σ importance·(y - intercept - weights·x)² + pull·|weights - prior|². The last unknown
// of the equations is the intercept; the others are the differences of the weights from the prior.
LinearFit Solve(absl::Span<const float> rows, absl::Span<const double> labels,
                absl::Span<const double> importance, absl::Span<const double> prior, double pull) {
  const size_t width = prior.size(), unknowns = width + 1;
  LinearFit fit{0, {prior.begin(), prior.end()}};
  std::vector<double> normal(unknowns * unknowns, 0.0), right(unknowns, 0.0), x(unknowns, 1.0);
  for (size_t i = 0; i < labels.size(); ++i) {
    const float* row = rows.data() + i * width;
    std::copy_n(row, width, x.begin());
    const double residual = labels[i] - Value(fit, row);
    for (size_t a = 0; a < unknowns; ++a) {
      const double scaled = importance[i] * x[a];
      right[a] += scaled * residual;
      for (size_t b = 0; b <= a; ++b) normal[a * unknowns + b] += scaled * x[b];
    }
  }
  for (size_t a = 0; a < width; ++a) normal[a * unknowns + a] += pull;
  Cholesky cholesky;
  for (size_t a = 0; a < unknowns; ++a) {
    const auto row = normal.begin() + a * unknowns;
    cholesky.Append({row, row + a}, row[a]);
  }
  cholesky.SolveLower(absl::MakeSpan(right));
  cholesky.SolveUpper(absl::MakeSpan(right));
  for (size_t a = 0; a < width; ++a) fit.weights[a] += right[a];
  fit.intercept = right[width];
  return fit;
}

constexpr double kFlat = 1e-3;  // the slope of the nearly flat line; > 0 to keep the order

}  // namespace

LinearFit FitRobustly(absl::Span<const float> rows, absl::Span<const double> labels,
                      absl::Span<const double> prior, double pull) {
  std::vector<double> importance(labels.size(), 1.0), residuals(labels.size());
  LinearFit fit;
  for (int round = 0; round < kRounds; ++round) {
    fit = Solve(rows, labels, importance, prior, pull);
    for (size_t i = 0; i < labels.size(); ++i)
      residuals[i] = std::abs(labels[i] - Value(fit, rows.data() + i * prior.size()));
    std::vector<double> sorted = residuals;
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    const double bend =
        kBend * std::max(kDeviationPerMedian * sorted[sorted.size() / 2], kLeastDeviation);
    for (size_t i = 0; i < labels.size(); ++i)
      importance[i] = residuals[i] <= bend ? 1.0 : bend / residuals[i];
  }
  return fit;
}

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

#include "server/cost_model/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace hone::cost_model {
namespace {

constexpr double kLeastVariance = 1e-10;  // labels closer than that are equal

double Correlation(const GaussianParameters& parameters, double square_distance) {
  const double square = square_distance / (parameters.length * parameters.length);
  if (parameters.kernel == Kernel::kRbf) return std::exp(-0.5 * square);
  const double r = std::sqrt(5 * square);
  return (1 + r + 5 * square / 3) * std::exp(-r);
}

// To every point of `columns` (one per column).
void SquareDistances(const Matrix& columns, absl::Span<const float> point,
                     std::vector<float>& out) {
  out.assign(columns.columns, 0.0f);
  for (int d = 0; d < columns.rows; ++d) {
    const float* coordinates = columns.row(d);
    const float at = point[d];
    float* __restrict sums = out.data();
    for (int i = 0; i < columns.columns; ++i) {
      const float difference = coordinates[i] - at;
      sums[i] += difference * difference;
    }
  }
}

double MedianDistance(const Matrix& points) {
  const Matrix columns = Transposed(points);
  std::vector<float> all, distances;
  for (int i = 0; i < points.rows; ++i) {
    SquareDistances(columns, {points.row(i), static_cast<size_t>(points.columns)}, distances);
    all.insert(all.end(), distances.begin(), distances.begin() + i);
  }
  if (all.empty()) return 1;
  std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
  const double median = std::sqrt(all[all.size() / 2]);
  return median > 0 ? median : 1;
}

}  // namespace

void GaussianProcess::Covariances(absl::Span<const float> point, absl::Span<double> out) const {
  thread_local std::vector<float> distances;
  SquareDistances(columns_, point, distances);
  for (size_t i = 0; i < out.size(); ++i) out[i] = Correlation(parameters_, distances[i]);
}

bool GaussianProcess::Fit(const Matrix& points, absl::Span<const double> labels,
                          const GaussianParameters& parameters) {
  GaussianProcess fitted;
  fitted.parameters_ = parameters;
  fitted.columns_ = Transposed(points);
  const int n = points.rows;
  std::vector<double> covariance(static_cast<size_t>(n) * n);
  for (int i = 0; i < n; ++i) {
    const auto row = absl::MakeSpan(covariance).subspan(static_cast<size_t>(i) * n, n);
    fitted.Covariances({points.row(i), static_cast<size_t>(points.columns)}, row);
    row[i] += parameters.noise;
  }
  if (!fitted.cholesky_.Factor(std::move(covariance), n)) return false;
  for (const double label : labels) fitted.mean_ += label / n;
  fitted.alpha_.assign(labels.begin(), labels.end());
  for (double& each : fitted.alpha_) each -= fitted.mean_;
  fitted.cholesky_.SolveLower(absl::MakeSpan(fitted.alpha_));
  double squares = 0;
  for (const double each : fitted.alpha_) squares += each * each;
  fitted.variance_ = std::max(squares / n, kLeastVariance);
  fitted.log_likelihood_ =
      -0.5 * (n * std::log(fitted.variance_) + fitted.cholesky_.LogDeterminant());
  fitted.cholesky_.SolveUpper(absl::MakeSpan(fitted.alpha_));
  *this = std::move(fitted);
  return true;
}

void GaussianProcess::Predict(absl::Span<const float> point, double& mean,
                              double& deviation) const {
  std::vector<double> covariances(cholesky_.size());
  Covariances(point, absl::MakeSpan(covariances));
  mean = mean_;
  for (size_t i = 0; i < covariances.size(); ++i) mean += covariances[i] * alpha_[i];
  cholesky_.SolveLower(absl::MakeSpan(covariances));
  double explained = 0;
  for (const double each : covariances) explained += each * each;
  deviation = std::sqrt(variance_ * std::max(0.0, 1 - explained));
}

std::vector<double> GaussianProcess::Precision() const {
  const int n = size();
  std::vector<double> inverse(static_cast<size_t>(n) * n, 0.0);
  for (int i = 0; i < n; ++i) {
    const auto row = absl::MakeSpan(inverse).subspan(static_cast<size_t>(i) * n, n);
    row[i] = 1;
    cholesky_.SolveLower(row);
    cholesky_.SolveUpper(row);
  }
  return inverse;
}

void GaussianProcess::LeaveOut(absl::Span<const double> precision, absl::Span<const int> members,
                               std::vector<double>& squares, std::vector<double>& variances) const {
  const auto count = static_cast<int>(members.size());
  std::vector<double> block;
  std::vector<double> errors;
  for (const int i : members) {
    for (const int j : members) block.push_back(precision[static_cast<size_t>(i) * size() + j]);
    errors.push_back(alpha_[i]);
  }
  Cholesky factor;
  if (!factor.Factor(std::move(block), count)) return;  // rounding; these tell nothing then
  factor.SolveLower(absl::MakeSpan(errors));
  factor.SolveUpper(absl::MakeSpan(errors));
  for (int i = 0; i < count; ++i) {
    std::vector<double> unit(count, 0.0);
    unit[i] = 1;
    factor.SolveLower(absl::MakeSpan(unit));
    double with_noise = 0;
    for (const double each : unit) with_noise += each * each;
    squares.push_back(errors[i] * errors[i]);
    variances.push_back(variance_ * std::max(0.0, with_noise - parameters_.noise));
  }
}

GaussianParameters ChooseParameters(const Matrix& points, absl::Span<const double> labels) {
  const double median = MedianDistance(points);
  GaussianParameters best{.length = median};
  double best_likelihood = -std::numeric_limits<double>::infinity();
  for (const Kernel kernel : {Kernel::kMatern52, Kernel::kRbf}) {
    for (const double length : {0.25, 0.5, 1.0, 2.0, 4.0}) {
      for (const double noise : {0.001, 0.01, 0.1}) {
        const GaussianParameters parameters{kernel, length * median, noise};
        GaussianProcess process;
        if (!process.Fit(points, labels, parameters)) continue;
        if (process.LogLikelihood() > best_likelihood) {
          best_likelihood = process.LogLikelihood();
          best = parameters;
        }
      }
    }
  }
  return best;
}

}  // namespace hone::cost_model

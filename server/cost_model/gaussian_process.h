#ifndef HONE_SERVER_COST_MODEL_GAUSSIAN_PROCESS_H_
#define HONE_SERVER_COST_MODEL_GAUSSIAN_PROCESS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/cost_model/dense.h"

namespace hone::cost_model {

enum class Kernel : uint8_t { kRbf, kMatern52 };

// What a process is besides its points. Lengths are in units of the points.
struct GaussianParameters {
  Kernel kernel = Kernel::kMatern52;
  double length = 1;
  double noise = 0.01;  // variance of a label, in units of that of the process
};

// Exact regression with a Gaussian process (Rasmussen and Williams, 2006, chapter 2), of constant
// mean and variance estimated from the labels. Immutable after Fit; thread-safe.
class GaussianProcess {
 public:
  // REQUIRES at least one point; points.rows == labels.size(); length > 0, noise > 0. False where
  // rounding leaves the covariance not positive definite; then it is as it was.
  bool Fit(const Matrix& points, absl::Span<const double> labels,
           const GaussianParameters& parameters);

  int size() const { return cholesky_.size(); }
  // Of the labels, with the process's variance at its best value.
  double LogLikelihood() const { return log_likelihood_; }

  // The posterior mean and deviation of what lies under the noise at a point of as many columns.
  void Predict(absl::Span<const float> point, double& mean, double& deviation) const;

  // The noise of a label.
  double noise_variance() const { return variance_ * parameters_.noise; }
  // The inverse of the points' covariance with the noise, in units of the process's variance; row
  // by row. Cubic in the points.
  std::vector<double> Precision() const;
  // What the process would say of some of its points had it not been shown them: appends the square
  // of each one's error and the variance of what lies under the noise there. `precision`: that of
  // Precision().
  void LeaveOut(absl::Span<const double> precision, absl::Span<const int> members,
                std::vector<double>& squares, std::vector<double>& variances) const;

 private:
  void Covariances(absl::Span<const float> point, absl::Span<double> out) const;

  GaussianParameters parameters_;
  Matrix columns_;  // the points transposed
  Cholesky cholesky_;
  std::vector<double> alpha_;  // covariance⁻¹ · centred labels
  double mean_ = 0;
  double variance_ = 0;
  double log_likelihood_ = 0;
};

// The parameters of the largest likelihood on a small grid: both kernels, lengths around the median
// distance of the points, noise of 0.1, 1 and 10 %. REQUIRES at least one point.
GaussianParameters ChooseParameters(const Matrix& points, absl::Span<const double> labels);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_GAUSSIAN_PROCESS_H_

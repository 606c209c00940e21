#ifndef HONE_SERVER_RESEARCH_MODEL_SPREAD_SCALE_H_
#define HONE_SERVER_RESEARCH_MODEL_SPREAD_SCALE_H_

#include <vector>

#include "server/tuner/cost_model/dense.h"
#include "server/tuner/cost_model/gaussian_process.h"

namespace hone::cost_model {

// Converts the posterior deviation of a Gaussian process to a realistic spread. The parameters with
// the largest likelihood fit the candidates of the training tasks, but underestimate the error in a
// task that the process was not trained on.
struct SpreadScale {
  double slope = 1;  // factor of the posterior variance
  double noise = 0;  // variance of the labels' noise

  // spread² = slope · deviation² + noise.
  double operator()(double deviation) const;

  // Fits the scale. The noise is the noise of the process. The slope is the smallest with which
  // 68.3 % of the errors at left-out points are within one spread. These errors follow from the
  // Cholesky factor (Rasmussen and Williams, 2006, section 5.4.2). Points are left out one by one,
  // and also in groups of neighbours, because the candidates of a task are close together; the
  // larger slope is used. The slope is 1 for fewer than 16 points. `deviation` is the factor of the
  // process's deviation.
  static SpreadScale Fit(const GaussianProcess& process, double deviation, const Matrix& points);
};

// The predictions of a process for some of its points as if they had been left out of the training.
class LeftOut {
 public:
  explicit LeftOut(const GaussianProcess& process);
  // Appends each member's squared error and its posterior variance without noise.
  void Append(absl::Span<const int> members, std::vector<double>& squares,
              std::vector<double>& variances) const;

 private:
  const size_t size_;
  const double noise_;  // variance
  const std::vector<double> weights_, precision_;
};

// Divides points into groups of neighbours and returns the group of each point. The first centre is
// the point farthest from the mean; each further one is the point farthest from all previous
// centres.
std::vector<int> Neighbourhoods(const Matrix& points, int groups);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_RESEARCH_MODEL_SPREAD_SCALE_H_

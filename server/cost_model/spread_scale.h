#ifndef HONE_SERVER_COST_MODEL_SPREAD_SCALE_H_
#define HONE_SERVER_COST_MODEL_SPREAD_SCALE_H_

#include <vector>

#include "server/cost_model/dense.h"
#include "server/cost_model/gaussian_process.h"

namespace hone::cost_model {

// What makes an honest spread of a Gaussian process's posterior deviation. The likelihood sees the
// candidates of a few tasks side by side and says how sure the process is between them; how far it
// is off in a task that it has not seen is not in it.
struct SpreadScale {
  double slope = 1;  // of the posterior variance
  double noise = 0;  // variance of a label that no point explains

  // spread² = slope · deviation² + noise.
  double operator()(double deviation) const;

  // The noise is the process's. The slope is the least with which 68.3 % of its errors lie within
  // one spread at points that it is not shown, which follow from its factor (Rasmussen and
  // Williams, 2006, section 5.4.2): each point left out alone, and whole groups of neighbours left
  // out – the candidates of a task lie together; the larger of the two. Fewer than 16 points:
  // slope 1. `deviation`: what the process's is multiplied with.
  static SpreadScale Fit(const GaussianProcess& process, double deviation, const Matrix& points);
};

// What a process would say of some of its points had it not been shown them.
class LeftOut {
 public:
  explicit LeftOut(const GaussianProcess& process);
  // Appends the square of each one's error, and the variance of what lies under the noise there.
  void Append(absl::Span<const int> members, std::vector<double>& squares,
              std::vector<double>& variances) const;

 private:
  const size_t size_;
  const double noise_;  // variance
  const std::vector<double> weights_, precision_;
};

// Groups of neighbours: the number of the group of each point. The centres are the point farthest
// from the mean and then, one by one, the one farthest from all centres so far.
std::vector<int> Neighbourhoods(const Matrix& points, int groups);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_SPREAD_SCALE_H_

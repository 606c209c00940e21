#ifndef HONE_SERVER_TUNER_SEARCH_RANDOM_DRAW_H_
#define HONE_SERVER_TUNER_SEARCH_RANDOM_DRAW_H_

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "common/base/rng.h"

namespace hone::search {

// Draws from the normal distribution with mean 0 and variance 1.
inline double StandardNormal(Rng& rng) {
  const double radius = std::sqrt(-2 * std::log(1 - rng.Uniform()));
  return radius * std::cos(2 * std::numbers::pi * rng.Uniform());
}

// Draws indices with probability proportional to max(score, 0), or uniformly if no score is
// positive.
class Roulette {
 public:
  // REQUIRES: `scores` is not empty.
  explicit Roulette(absl::Span<const double> scores) {
    double total = 0;
    for (const double score : scores) cumulative_.push_back(total += std::max(score, 0.0));
  }
  size_t Spin(Rng& rng) const {
    const double total = cumulative_.back();
    if (total <= 0) return rng.Below(cumulative_.size());
    const auto found = absl::c_upper_bound(cumulative_, rng.Uniform() * total);
    return std::min<size_t>(found - cumulative_.begin(), cumulative_.size() - 1);
  }

 private:
  std::vector<double> cumulative_;
};

}  // namespace hone::search

#endif  // HONE_SERVER_TUNER_SEARCH_RANDOM_DRAW_H_

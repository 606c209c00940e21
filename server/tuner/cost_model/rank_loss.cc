#include "server/tuner/cost_model/rank_loss.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"

namespace hone::cost_model {

RankLoss::RankLoss(absl::Span<const double> throughput, int pairs_per_candidate, uint64_t seed) {
  const auto count = static_cast<int32_t>(throughput.size());
  const auto add = [&](int32_t a, int32_t b) {
    if (throughput[a] == throughput[b]) return;
    if (throughput[a] < throughput[b]) std::swap(a, b);
    pairs_.push_back({a, b, throughput[a] - throughput[b]});
    total_ += pairs_.back().weight;
  };
  if (count - 1 <= 2 * pairs_per_candidate) {
    for (int32_t a = 0; a < count; ++a) {
      for (int32_t b = a + 1; b < count; ++b) add(a, b);
    }
  } else {
    Rng rng(seed, 0x72616e6b);
    for (int32_t a = 0; a < count; ++a) {
      for (int k = 0; k < pairs_per_candidate; ++k) {
        const auto other = static_cast<int32_t>(rng.Below(count - 1));
        add(a, other + (other >= a ? 1 : 0));
      }
    }
  }
  for (Pair& pair : pairs_) pair.weight *= count / total_;
}

double RankLoss::Differentiate(absl::Span<const double> scores, absl::Span<double> gradient,
                               absl::Span<double> hessian) const {
  absl::c_fill(gradient, 0.0);
  absl::c_fill(hessian, 0.0);
  double loss = 0;
  for (const Pair& pair : pairs_) {
    const double gap = std::clamp(scores[pair.better] - scores[pair.worse], -500.0, 500.0);
    const double wrong = 1 / (1 + std::exp(gap));  // probability of the wrong order
    loss += pair.weight * (gap > 0 ? std::log1p(std::exp(-gap)) : std::log1p(std::exp(gap)) - gap);
    gradient[pair.better] -= pair.weight * wrong;
    gradient[pair.worse] += pair.weight * wrong;
    const double curvature = pair.weight * wrong * (1 - wrong);
    hessian[pair.better] += curvature;
    hessian[pair.worse] += curvature;
  }
  return pairs_.empty() ? 0 : loss / static_cast<double>(scores.size());
}

}  // namespace hone::cost_model

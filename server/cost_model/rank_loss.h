#ifndef HONE_SERVER_COST_MODEL_RANK_LOSS_H_
#define HONE_SERVER_COST_MODEL_RANK_LOSS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace hone::cost_model {

// The pairwise rank loss: over pairs of candidates of which a is the better one,
//     Σ (y_a - y_b) · log(1 + exp(s_b - s_a)) / Σ (y_a - y_b).
// A pair weighs as much as its labels differ, which is LambdaRank's weight for a linear gain
// without discount; so ties and noise between neighbours say little. A candidate meets a bounded
// number of others, drawn once.
class RankLoss {
 public:
  // `throughput` is copied into the pairs. All pairs where there are few candidates.
  RankLoss(absl::Span<const double> throughput, int pairs_per_candidate, uint64_t seed);

  // The loss at these scores, one per candidate, with its first and second derivatives. Each sums
  // to 1 in scale: multiplied by the number of candidates. 0 where all labels are equal.
  double Differentiate(absl::Span<const double> scores, absl::Span<double> gradient,
                       absl::Span<double> hessian) const;

 private:
  struct Pair {
    int32_t better, worse;
    double weight;  // all together: the number of candidates
  };
  std::vector<Pair> pairs_;
  double total_ = 0;
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_RANK_LOSS_H_

#ifndef HONE_SERVER_TUNER_COST_MODEL_RANK_LOSS_H_
#define HONE_SERVER_TUNER_COST_MODEL_RANK_LOSS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/rng.h"

namespace hone::cost_model {

// The pairwise rank loss, over pairs of candidates (a, b) in which a is better:
//     Σ (y_a - y_b) · log(1 + exp(s_b - s_a)) / Σ (y_a - y_b).
// The weight of a pair is the difference of its labels (LambdaRank's weight for a linear gain
// without discount), so ties and noise between similar candidates count little. Each candidate is
// compared with a bounded number of others, which are drawn once.
class RankLoss {
 public:
  // Uses all pairs if there are few candidates. `throughput` need not outlive this object.
  RankLoss(absl::Span<const double> throughput, int pairs_per_candidate, uint64_t seed);

  // Returns the loss at these scores, one per candidate, and sets its first and second derivatives,
  // multiplied by the number of candidates. All are 0 if all labels are equal.
  double Differentiate(absl::Span<const double> scores, absl::Span<double> gradient,
                       absl::Span<double> hessian) const;

 private:
  struct Pair {
    int32_t better, worse;
    double weight;  // the sum of all is the number of candidates
  };
  std::vector<Pair> pairs_;
  double total_ = 0;
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_RANK_LOSS_H_

#ifndef HONE_SERVER_COST_MODEL_RANK_LOSS_H_
#define HONE_SERVER_COST_MODEL_RANK_LOSS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/rng.h"

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

// The steps of a training by the rank loss of batches: every epoch takes the candidates in a new
// random order, in equal shares, so that no batch is too small to compare.
class RankBatches {
 public:
  struct Options {
    int size;         // of a batch at most
    int epochs;       // at least
    int least_steps;  // for few candidates
  };
  // `throughput` outlives it.
  RankBatches(absl::Span<const double> throughput, const Options& options, uint64_t seed,
              uint64_t purpose);

  // To the next batch. False: the training is over.
  bool Next();
  // The candidates of the batch.
  absl::Span<const int> members() const;
  // The share of the training from this batch on.
  double left() const { return 1 - static_cast<double>(step_) / steps_; }
  // Of the mean loss by the scores of the members. Valid until the next call.
  absl::Span<const double> Gradient(absl::Span<const double> scores);

 private:
  const absl::Span<const double> throughput_;
  const int size_;
  const uint64_t seed_;
  const int batches_, steps_;
  Rng rng_;
  std::vector<int> order_;
  int step_ = -1;
  std::vector<double> labels_, gradient_, hessian_;
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_RANK_LOSS_H_

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

// The batches of one training run with the rank loss. Every epoch divides the candidates, in a
// new random order, into batches of equal size, so no batch is too small for comparisons.
class RankBatches {
 public:
  struct Options {
    int size;         // maximum size of a batch
    int epochs;       // minimum number of epochs
    int least_steps;  // minimum number of steps; matters if there are few candidates
  };
  // `throughput` must outlive this object.
  RankBatches(absl::Span<const double> throughput, const Options& options, uint64_t seed,
              uint64_t purpose);

  // Advances to the next batch. Returns false when the training is over.
  bool Next();
  // Returns the candidates of the batch.
  absl::Span<const int> members() const;
  // Returns the share of the steps that remain, including this one.
  double left() const { return 1 - static_cast<double>(step_) / steps_; }
  // Returns the gradient of the mean loss with respect to the members' scores. Valid until the next
  // call.
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

#endif  // HONE_SERVER_TUNER_COST_MODEL_RANK_LOSS_H_

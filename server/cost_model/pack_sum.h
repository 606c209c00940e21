#ifndef HONE_SERVER_COST_MODEL_PACK_SUM_H_
#define HONE_SERVER_COST_MODEL_PACK_SUM_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/cost_model/pack_objective.h"

namespace hone::cost_model {

// Ansor's objective (Zheng et al., OSDI 2020, section 5.2): the score of a program is the sum of
// the scores of its statements, score(P) = Σ f(s), and the loss is w·(score(P) − y)² with y =
// throughput and w = y, so that the model is precise where it matters, near the best.
//
// Two differences. Weights have a floor: failed and very slow candidates (y = 0) must pull their
// statements down, and not vanish. And all statements of a program move at once: with n of them one
// round of learning rate η covers the fraction η·n of the error, which overshoots above η·n = 1;
// there the hessian grows by η·n.
class PackSum final : public PackObjective {
 public:
  static constexpr double kMinWeight = 0.05;

  // Candidate i has the rows [row_begin[i], row_begin[i + 1]) and the label throughput[i]. Both
  // outlive this.
  PackSum(absl::Span<const int32_t> row_begin, absl::Span<const double> throughput,
          double learning_rate);

  // The error is the root mean square of the candidates' (not weighted).
  double Differentiate(absl::Span<const float> row_scores) override;

  absl::Span<float> gradient() override { return absl::MakeSpan(gradient_); }
  absl::Span<float> hessian() override { return absl::MakeSpan(hessian_); }

 private:
  absl::Span<const int32_t> row_begin_;
  absl::Span<const double> throughput_;
  std::vector<float> gradient_;
  std::vector<float> hessian_;  // does not depend on the scores
};

// The sum of the rows of every candidate.
std::vector<double> SumRows(absl::Span<const int32_t> row_begin,
                            absl::Span<const float> row_scores);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_PACK_SUM_H_

#ifndef HONE_SERVER_COST_MODEL_PACK_OBJECTIVE_H_
#define HONE_SERVER_COST_MODEL_PACK_OBJECTIVE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/cost_model/rank_loss.h"

namespace hone::cost_model {

// What boosted trees over rows are trained for, where a candidate's score is the sum of its rows':
// score(P) = Σ f(s). All rows of a candidate move at once: with n of them one round of learning
// rate η covers the fraction η·n of the error, which overshoots above η·n = 1; there the hessian
// grows by η·n.
class PackObjective {
 public:
  // Candidate i has the rows [row_begin[i], row_begin[i + 1]), which outlive this.
  PackObjective(absl::Span<const int32_t> row_begin, double learning_rate)
      : row_begin_(row_begin),
        learning_rate_(learning_rate),
        gradient_(row_begin.back()),
        hessian_(row_begin.back()) {}
  virtual ~PackObjective() = default;

  // First and second derivative per row at these row scores, in gradient() and hessian(), and the
  // error that training makes small. REQUIRES one score per row and at least one candidate.
  virtual double Differentiate(absl::Span<const float> row_scores) = 0;

  absl::Span<float> gradient() { return absl::MakeSpan(gradient_); }
  absl::Span<float> hessian() { return absl::MakeSpan(hessian_); }

 protected:
  absl::Span<const int32_t> row_begin() const { return row_begin_; }
  // Sets the derivatives of all rows of a candidate.
  void Set(size_t candidate, double gradient, double hessian);

 private:
  const absl::Span<const int32_t> row_begin_;
  const double learning_rate_;
  std::vector<float> gradient_, hessian_;
};

// Ansor's objective (Zheng et al., OSDI 2020, section 5.2): the loss is w·(score(P) − y)² with y =
// throughput and w = y, so that the model is precise where it matters, near the best. Weights have
// a floor: failed and very slow candidates (y = 0) must pull their statements down, and not vanish.
class PackSum final : public PackObjective {
 public:
  static constexpr double kMinWeight = 0.05;

  // `throughput` has the labels of the candidates, and outlives this.
  PackSum(absl::Span<const int32_t> row_begin, absl::Span<const double> throughput,
          double learning_rate)
      : PackObjective(row_begin, learning_rate), throughput_(throughput) {}

  // The error is the root mean square of the candidates' (not weighted).
  double Differentiate(absl::Span<const float> row_scores) override;

 private:
  const absl::Span<const double> throughput_;
};

// The rank loss on sums of rows: only the order of candidates counts. The error is the loss.
class PackRank final : public PackObjective {
 public:
  static constexpr int kPairsPerCandidate = 32;

  PackRank(absl::Span<const int32_t> row_begin, absl::Span<const double> throughput,
           double learning_rate, uint64_t seed);

  double Differentiate(absl::Span<const float> row_scores) override;

 private:
  const RankLoss loss_;
  std::vector<double> first_, second_;  // per candidate
};

// The sum of the rows of every candidate.
std::vector<double> SumRows(absl::Span<const int32_t> row_begin,
                            absl::Span<const float> row_scores);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_PACK_OBJECTIVE_H_

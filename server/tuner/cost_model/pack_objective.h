#ifndef HONE_SERVER_TUNER_COST_MODEL_PACK_OBJECTIVE_H_
#define HONE_SERVER_TUNER_COST_MODEL_PACK_OBJECTIVE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/tuner/cost_model/rank_loss.h"

namespace hone::cost_model {

// The training objective of boosted trees on rows, where a candidate's score is the sum of the
// scores of its rows: score(P) = Σ f(s). One round changes all n rows of a candidate, so with
// learning rate η it removes the fraction η·n of the error. If η·n > 1, this would overshoot, so
// the hessian is multiplied by η·n.
class PackObjective {
 public:
  // Candidate i has the rows [row_begin[i], row_begin[i + 1]). `row_begin` must outlive this
  // object.
  PackObjective(absl::Span<const int32_t> row_begin, double learning_rate)
      : row_begin_(row_begin),
        learning_rate_(learning_rate),
        gradient_(row_begin.back()),
        hessian_(row_begin.back()) {}
  virtual ~PackObjective() = default;

  // Computes the first and second derivative per row at these scores, in gradient() and hessian().
  // Returns the error that training minimizes. REQUIRES: one score per row and at least one
  // candidate.
  virtual double Differentiate(absl::Span<const float> row_scores) = 0;

  absl::Span<float> gradient() { return absl::MakeSpan(gradient_); }
  absl::Span<float> hessian() { return absl::MakeSpan(hessian_); }

 protected:
  absl::Span<const int32_t> row_begin() const { return row_begin_; }
  // Sets the derivatives for all rows of a candidate.
  void Set(size_t candidate, double gradient, double hessian);

 private:
  const absl::Span<const int32_t> row_begin_;
  const double learning_rate_;
  std::vector<float> gradient_, hessian_;
};

// Ansor's objective (Zheng et al., OSDI 2020, section 5.2): the loss is w·(score(P) − y)² with y =
// throughput and w = y, which makes the model most precise for the best candidates. Weights are at
// least kMinWeight, because failed and very slow candidates (y ≈ 0) must lower the scores of their
// statements.
class PackSum final : public PackObjective {
 public:
  static constexpr double kMinWeight = 0.05;

  // `throughput` has the labels of the candidates. It must outlive this object.
  PackSum(absl::Span<const int32_t> row_begin, absl::Span<const double> throughput,
          double learning_rate)
      : PackObjective(row_begin, learning_rate), throughput_(throughput) {}

  // The error is the root mean squared error of the candidates, without weights.
  double Differentiate(absl::Span<const float> row_scores) override;

 private:
  const absl::Span<const double> throughput_;
};

// The rank loss (rank_loss.h) of the candidates' scores: only their order counts. The error is the
// loss.
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

// Returns the sum of each candidate's row scores.
std::vector<double> SumRows(absl::Span<const int32_t> row_begin,
                            absl::Span<const float> row_scores);

}  // namespace hone::cost_model

#endif  // HONE_SERVER_TUNER_COST_MODEL_PACK_OBJECTIVE_H_

#ifndef HONE_SERVER_COST_MODEL_PACK_RANK_H_
#define HONE_SERVER_COST_MODEL_PACK_RANK_H_

#include <cstdint>
#include <vector>

#include "server/cost_model/pack_objective.h"
#include "server/cost_model/rank_loss.h"

namespace hone::cost_model {

// The rank loss on sums of rows: only the order of candidates counts. The error is the loss.
class PackRank final : public PackObjective {
 public:
  static constexpr int kPairsPerCandidate = 32;

  // As PackSum's. `row_begin` outlives this.
  PackRank(absl::Span<const int32_t> row_begin, absl::Span<const double> throughput,
           double learning_rate, uint64_t seed);

  double Differentiate(absl::Span<const float> row_scores) override;
  absl::Span<float> gradient() override { return absl::MakeSpan(gradient_); }
  absl::Span<float> hessian() override { return absl::MakeSpan(hessian_); }

 private:
  const absl::Span<const int32_t> row_begin_;
  const double learning_rate_;
  const RankLoss loss_;
  std::vector<double> first_, second_;  // per candidate
  std::vector<float> gradient_, hessian_;
};

}  // namespace hone::cost_model

#endif  // HONE_SERVER_COST_MODEL_PACK_RANK_H_

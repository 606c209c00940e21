#include "server/cost_model/pack_rank.h"

#include <algorithm>
#include <cstddef>

#include "server/cost_model/pack_sum.h"

namespace hone::cost_model {
namespace {

// Of candidates that are already in order: keeps a leaf of such from growing without bound.
constexpr double kLeastHessian = 1e-3;

}  // namespace

PackRank::PackRank(absl::Span<const int32_t> row_begin, absl::Span<const double> throughput,
                   double learning_rate, uint64_t seed)
    : row_begin_(row_begin),
      learning_rate_(learning_rate),
      loss_(throughput, kPairsPerCandidate, seed),
      first_(throughput.size()),
      second_(throughput.size()),
      gradient_(row_begin.back()),
      hessian_(row_begin.back()) {}

double PackRank::Differentiate(absl::Span<const float> row_scores) {
  const double loss = loss_.Differentiate(SumRows(row_begin_, row_scores), absl::MakeSpan(first_),
                                          absl::MakeSpan(second_));
  for (size_t i = 0; i < first_.size(); ++i) {
    const int rows = row_begin_[i + 1] - row_begin_[i];
    // As in pack_sum.h: all rows of a candidate move at once.
    const double hessian =
        std::max(second_[i], kLeastHessian) * std::max(1.0, learning_rate_ * rows);
    std::fill_n(gradient_.begin() + row_begin_[i], rows, static_cast<float>(first_[i]));
    std::fill_n(hessian_.begin() + row_begin_[i], rows, static_cast<float>(hessian));
  }
  return loss;
}

}  // namespace hone::cost_model

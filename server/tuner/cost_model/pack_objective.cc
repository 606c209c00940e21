#include "server/tuner/cost_model/pack_objective.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace hone::cost_model {
namespace {

// The minimum hessian, which matters for candidates that are already in order. It bounds the value
// of a leaf that has only such candidates.
constexpr double kLeastHessian = 1e-3;

}  // namespace

void PackObjective::Set(size_t candidate, double gradient, double hessian) {
  const int32_t begin = row_begin_[candidate], rows = row_begin_[candidate + 1] - begin;
  hessian *= std::max(1.0, learning_rate_ * rows);
  std::fill_n(gradient_.begin() + begin, rows, static_cast<float>(gradient));
  std::fill_n(hessian_.begin() + begin, rows, static_cast<float>(hessian));
}

double PackSum::Differentiate(absl::Span<const float> row_scores) {
  double squares = 0;
  const std::vector<double> scores = SumRows(row_begin(), row_scores);
  for (size_t i = 0; i < scores.size(); ++i) {
    const double error = scores[i] - throughput_[i];
    const double weight = std::max(throughput_[i], kMinWeight);
    squares += error * error;
    Set(i, weight * error, weight);
  }
  return std::sqrt(squares / static_cast<double>(scores.size()));
}

PackRank::PackRank(absl::Span<const int32_t> row_begin, absl::Span<const double> throughput,
                   double learning_rate, uint64_t seed)
    : PackObjective(row_begin, learning_rate),
      loss_(throughput, kPairsPerCandidate, seed),
      first_(throughput.size()),
      second_(throughput.size()) {}

double PackRank::Differentiate(absl::Span<const float> row_scores) {
  const double loss = loss_.Differentiate(SumRows(row_begin(), row_scores), absl::MakeSpan(first_),
                                          absl::MakeSpan(second_));
  for (size_t i = 0; i < first_.size(); ++i) Set(i, first_[i], std::max(second_[i], kLeastHessian));
  return loss;
}

std::vector<double> SumRows(absl::Span<const int32_t> row_begin,
                            absl::Span<const float> row_scores) {
  std::vector<double> sums(row_begin.size() - 1, 0.0);
  for (size_t i = 0; i < sums.size(); ++i) {
    for (int32_t row = row_begin[i]; row < row_begin[i + 1]; ++row) sums[i] += row_scores[row];
  }
  return sums;
}

}  // namespace hone::cost_model

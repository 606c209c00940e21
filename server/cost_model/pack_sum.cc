#include "server/cost_model/pack_sum.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace hone::cost_model {

PackSum::PackSum(absl::Span<const int32_t> row_begin, absl::Span<const double> throughput,
                 double learning_rate)
    : row_begin_(row_begin),
      throughput_(throughput),
      gradient_(row_begin.back()),
      hessian_(row_begin.back()) {
  for (size_t i = 0; i < throughput_.size(); ++i) {
    const int rows = row_begin_[i + 1] - row_begin_[i];
    const double hessian =
        std::max(throughput_[i], kMinWeight) * std::max(1.0, learning_rate * rows);
    std::fill_n(hessian_.begin() + row_begin_[i], rows, static_cast<float>(hessian));
  }
}

double PackSum::Differentiate(absl::Span<const float> row_scores) {
  double squares = 0;
  const std::vector<double> scores = SumRows(row_begin_, row_scores);
  for (size_t i = 0; i < scores.size(); ++i) {
    const double error = scores[i] - throughput_[i];
    squares += error * error;
    std::fill(gradient_.begin() + row_begin_[i], gradient_.begin() + row_begin_[i + 1],
              static_cast<float>(std::max(throughput_[i], kMinWeight) * error));
  }
  return std::sqrt(squares / static_cast<double>(scores.size()));
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

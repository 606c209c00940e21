#include "server/cost_model/published/adam.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace hone::cost_model {

void Adam::Step(absl::Span<Matrix* const> parameters, absl::Span<const Matrix> gradients,
                double learning_rate) {
  constexpr float kFirst = 0.9f, kSecond = 0.999f, kEpsilon = 1e-8f;
  if (first_.empty()) {
    for (const Matrix& gradient : gradients) {
      first_.emplace_back(gradient.rows, gradient.columns);
      second_.emplace_back(gradient.rows, gradient.columns);
    }
  }
  ++steps_;
  double squares = 0;
  for (const Matrix& gradient : gradients) {
    for (const float value : gradient.values) squares += double{value} * value;
  }
  const auto clip =
      static_cast<float>(std::min(1.0, largest_gradient_ / std::max(std::sqrt(squares), 1e-12)));
  const auto decay = static_cast<float>(weight_decay_);
  const auto rate = static_cast<float>(learning_rate * std::sqrt(1 - std::pow(kSecond, steps_)) /
                                       (1 - std::pow(kFirst, steps_)));
  for (size_t p = 0; p < parameters.size(); ++p) {
    std::vector<float>& values = parameters[p]->values;
    for (size_t i = 0; i < values.size(); ++i) {
      const float g = gradients[p].values[i] * clip + decay * values[i];
      float& m = first_[p].values[i];
      float& v = second_[p].values[i];
      m = kFirst * m + (1 - kFirst) * g;
      v = kSecond * v + (1 - kSecond) * g * g;
      values[i] -= rate * m / (std::sqrt(v) + kEpsilon);
    }
  }
}

}  // namespace hone::cost_model

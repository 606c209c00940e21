#include "server/tuner/cost_model/metric_error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace hone::cost_model {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

}  // namespace

double Rmse(absl::Span<const double> mean, absl::Span<const double> throughput) {
  if (mean.empty()) return kNothing;
  double sum = 0;
  for (size_t i = 0; i < mean.size(); ++i) {
    sum += (mean[i] - throughput[i]) * (mean[i] - throughput[i]);
  }
  return std::sqrt(sum / static_cast<double>(mean.size()));
}

double CalibrationError(absl::Span<const double> mean, absl::Span<const double> throughput,
                        int bins) {
  if (mean.empty()) return kNothing;
  std::vector<int> order(mean.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return mean[a] < mean[b]; });
  const size_t groups = std::min(mean.size(), static_cast<size_t>(std::max(bins, 1)));
  double error = 0;
  for (size_t group = 0; group < groups; ++group) {
    const size_t begin = group * order.size() / groups, end = (group + 1) * order.size() / groups;
    double difference = 0;
    for (size_t i = begin; i < end; ++i) difference += mean[order[i]] - throughput[order[i]];
    error += std::abs(difference);
  }
  return error / static_cast<double>(mean.size());
}

double Coverage(absl::Span<const double> mean, absl::Span<const double> spread,
                absl::Span<const double> throughput, double spreads) {
  if (mean.empty()) return kNothing;
  int covered = 0;
  for (size_t i = 0; i < mean.size(); ++i) {
    covered += std::abs(mean[i] - throughput[i]) <= spreads * spread[i];
  }
  return static_cast<double>(covered) / static_cast<double>(mean.size());
}

}  // namespace hone::cost_model

#include "server/tuner/cost_model/metric.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/algorithm/container.h"

namespace hone::cost_model {
namespace {

constexpr double kNothingRanked = std::numeric_limits<double>::quiet_NaN();

// Returns the first k candidates by score, best first.
std::vector<int> First(absl::Span<const double> score, int k) {
  std::vector<int> order(score.size());
  absl::c_iota(order, 0);
  absl::c_stable_sort(order, [&](int a, int b) { return score[a] > score[b]; });
  order.resize(std::min(order.size(), static_cast<size_t>(std::max(k, 0))));
  return order;
}

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

}  // namespace

double TopK(absl::Span<const RankedTask> tasks, int k) {
  double fastest = 0, picked = 0;
  for (const RankedTask& task : tasks) {
    double least = std::numeric_limits<double>::infinity(), slowest = 0;
    for (const double latency : task.latency_ns) {
      if (!(latency > 0)) continue;
      least = std::min(least, latency);
      slowest = std::max(slowest, latency);
    }
    if (slowest == 0) continue;
    double pick = slowest;
    for (const int i : First(task.score, k)) {
      if (task.latency_ns[i] > 0) pick = std::min(pick, task.latency_ns[i]);
    }
    fastest += least * task.weight;
    picked += pick * task.weight;
  }
  return picked > 0 ? fastest / picked : kNothingRanked;
}

double PeakAtK(absl::Span<const double> score, absl::Span<const double> throughput, int k) {
  const std::vector<int> picks = First(score, k);
  if (picks.empty()) return kNothingRanked;
  const double best = *absl::c_max_element(throughput);
  if (!(best > 0)) return kNothingRanked;
  double so_far = 0, sum = 0;
  for (const int i : picks) {
    so_far = std::max(so_far, throughput[i]);
    sum += so_far / best;
  }
  return sum / static_cast<double>(picks.size());
}

double RecallAtK(absl::Span<const double> score, absl::Span<const double> throughput, int k) {
  const std::vector<int> picked = First(score, k), best = First(throughput, k);
  if (best.empty()) return kNothingRanked;
  int found = 0;
  for (const int i : best) found += absl::c_count(picked, i);
  return static_cast<double>(found) / static_cast<double>(best.size());
}

double AverageRecall(absl::Span<const double> score, absl::Span<const double> throughput, int n) {
  const std::vector<int> picked = First(score, n), best = First(throughput, n);
  if (best.empty()) return kNothingRanked;
  // After k steps, the bits of a candidate say in which of the two lists it was.
  std::vector<int> seen(score.size(), 0);
  double sum = 0;
  int found = 0;
  for (size_t k = 0; k < best.size(); ++k) {
    seen[picked[k]] |= 1;
    found += seen[picked[k]] == 3;
    const bool both = seen[best[k]] == 1;
    seen[best[k]] |= 2;
    found += both;
    sum += static_cast<double>(found) / static_cast<double>(k + 1);
  }
  return sum / static_cast<double>(best.size());
}

double PairwiseAccuracy(absl::Span<const double> score, absl::Span<const double> throughput,
                        double least_difference) {
  int64_t pairs = 0, right = 0, equal = 0;
  for (size_t i = 0; i < score.size(); ++i) {
    for (size_t j = 0; j < score.size(); ++j) {
      if (!(throughput[j] - throughput[i] > least_difference)) continue;
      ++pairs;
      right += score[i] < score[j];
      equal += score[i] == score[j];
    }
  }
  if (pairs == 0) return kNothingRanked;
  return (static_cast<double>(right) + 0.5 * static_cast<double>(equal)) /
         static_cast<double>(pairs);
}

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
  absl::c_iota(order, 0);
  absl::c_stable_sort(order, [&](int a, int b) { return mean[a] < mean[b]; });
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

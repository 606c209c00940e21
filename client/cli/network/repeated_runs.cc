#include "client/cli/network/repeated_runs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace hone::cli {

void RepeatedRuns::Add(double run_ns, std::vector<network::StepTime> steps) {
  if (steps_.size() < kMostSteps) steps_.push_back(std::move(steps));
  runs_ns_.push_back(run_ns);
}

double RepeatedRuns::At(double share) const {
  std::vector<double> sorted = runs_ns_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

double RepeatedRuns::SumNs() const {
  return std::accumulate(runs_ns_.begin(), runs_ns_.end(), 0.0);
}

const std::vector<network::StepTime>& RepeatedRuns::MedianSteps() const {
  const double median = At(0.5);
  size_t nearest = 0;
  for (size_t i = 1; i < steps_.size(); ++i) {
    if (std::abs(runs_ns_[i] - median) < std::abs(runs_ns_[nearest] - median)) nearest = i;
  }
  return steps_[nearest];
}

}  // namespace hone::cli

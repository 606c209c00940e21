#include "server/cost_model/spread_scale.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace hone::cost_model {
namespace {

constexpr int kLeastPoints = 16;
constexpr int kPointsPerGroup = 24;
constexpr int kMostGroups = 8;
constexpr double kWithinOne = 0.683;
// The slope's bounds: less would make the process surer than it is of what it was shown, more than
// tenfold deviations say nothing.
constexpr double kLeastSlope = 0.25, kMostSlope = 100;
constexpr double kNothing = 1e-12;  // a variance

double SquareDistance(const float* a, const float* b, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    sum += difference * difference;
  }
  return sum;
}

// The slope with which that share of the errors at points left out lies within one spread.
double SlopeWithin(const GaussianProcess& process, const std::vector<double>& precision,
                   const std::vector<std::vector<int>>& groups) {
  std::vector<double> squares, variances;
  for (const std::vector<int>& group : groups) {
    process.LeaveOut(precision, group, squares, variances);
  }
  std::vector<double> slopes;
  for (size_t i = 0; i < squares.size(); ++i) {
    slopes.push_back((squares[i] - process.noise_variance()) / std::max(variances[i], kNothing));
  }
  if (slopes.empty()) return 0;
  const auto place =
      slopes.begin() + static_cast<std::ptrdiff_t>(kWithinOne * static_cast<double>(slopes.size()));
  std::nth_element(slopes.begin(), place, slopes.end());
  return *place;
}

}  // namespace

double SpreadScale::operator()(double deviation) const {
  return std::sqrt(slope * deviation * deviation + noise);
}

std::vector<int> Neighbourhoods(const Matrix& points, int groups) {
  std::vector<float> centre(points.columns, 0.0f);
  for (int i = 0; i < points.rows; ++i) {
    for (int c = 0; c < points.columns; ++c) {
      centre[c] += points.row(i)[c] / static_cast<float>(points.rows);
    }
  }
  int next = 0;
  double farthest = -1;
  for (int i = 0; i < points.rows; ++i) {
    const double distance = SquareDistance(points.row(i), centre.data(), points.columns);
    if (distance > farthest) farthest = distance, next = i;
  }
  std::vector<int> group(points.rows, 0);
  std::vector<double> nearest(points.rows, std::numeric_limits<double>::infinity());
  for (int g = 0; g < groups; ++g) {
    const float* const at = points.row(next);
    farthest = -1;
    for (int i = 0; i < points.rows; ++i) {
      const double distance = SquareDistance(points.row(i), at, points.columns);
      if (distance < nearest[i]) nearest[i] = distance, group[i] = g;
      if (nearest[i] > farthest) farthest = nearest[i], next = i;
    }
  }
  return group;
}

SpreadScale SpreadScale::Fit(const GaussianProcess& process, const Matrix& points) {
  SpreadScale scale{.noise = process.noise_variance()};
  const int n = points.rows;
  if (n < kLeastPoints) return scale;
  const std::vector<double> precision = process.Precision();
  std::vector<std::vector<int>> alone, together(std::clamp(n / kPointsPerGroup, 2, kMostGroups));
  for (int i = 0; i < n; ++i) alone.push_back({i});
  const std::vector<int> group = Neighbourhoods(points, static_cast<int>(together.size()));
  for (int i = 0; i < n; ++i) together[group[i]].push_back(i);
  // What is left of one group is nothing to learn from.
  std::erase_if(together, [&](const auto& members) {
    return members.empty() || static_cast<int>(members.size()) == n;
  });
  scale.slope = std::clamp(
      std::max(SlopeWithin(process, precision, alone), SlopeWithin(process, precision, together)),
      kLeastSlope, kMostSlope);
  return scale;
}

}  // namespace hone::cost_model

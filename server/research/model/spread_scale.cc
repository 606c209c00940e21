#include "server/research/model/spread_scale.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace hone::cost_model {
namespace {

constexpr int kLeastPoints = 16;
constexpr int kPointsPerGroup = 24;
constexpr int kMostGroups = 8;
constexpr double kWithinOne = 0.683;
// Bounds of the slope. A smaller slope would make the process more certain than it is at training
// points; a larger slope, with more than ten times the deviation, makes the spread useless.
constexpr double kLeastSlope = 0.25, kMostSlope = 100;
constexpr double kLeastVariance = 1e-12;  // minimum variance to divide by

double SquareDistance(const float* a, const float* b, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    sum += difference * difference;
  }
  return sum;
}

// Returns the slope with which the share kWithinOne of the errors at left-out points is within one
// spread.
double SlopeWithin(const LeftOut& left_out, double variance, double noise,
                   const std::vector<std::vector<int>>& groups) {
  std::vector<double> squares, variances, slopes;
  for (const std::vector<int>& group : groups) left_out.Append(group, squares, variances);
  for (size_t i = 0; i < squares.size(); ++i)
    slopes.push_back((squares[i] - noise) / std::max(variance * variances[i], kLeastVariance));
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

LeftOut::LeftOut(const GaussianProcess& process)
    : size_(process.size()),
      noise_(process.kernel().noise * process.kernel().noise),
      weights_(process.Weights()),
      precision_(process.Precision()) {}

void LeftOut::Append(absl::Span<const int> members, std::vector<double>& squares,
                     std::vector<double>& variances) const {
  Cholesky factor;  // of the precision of the members
  std::vector<double> errors;
  for (size_t m = 0; m < members.size(); ++m) {
    const double* const row = precision_.data() + members[m] * size_;
    std::vector<double> earlier;
    for (const int other : members.first(m)) earlier.push_back(row[other]);
    factor.Append(std::move(earlier), row[members[m]]);
    errors.push_back(weights_[members[m]]);
  }
  factor.SolveLower(absl::MakeSpan(errors));
  factor.SolveUpper(absl::MakeSpan(errors));
  for (size_t m = 0; m < members.size(); ++m) {
    std::vector<double> unit(members.size(), 0.0);
    unit[m] = 1;
    factor.SolveLower(absl::MakeSpan(unit));
    double with_noise = 0;
    for (const double each : unit) with_noise += each * each;
    squares.push_back(errors[m] * errors[m]);
    variances.push_back(std::max(0.0, with_noise - noise_));
  }
}

SpreadScale SpreadScale::Fit(const GaussianProcess& process, double deviation,
                             const Matrix& points) {
  const double variance = deviation * deviation;
  SpreadScale scale{.noise = variance * process.kernel().noise * process.kernel().noise};
  const int n = points.rows;
  if (n < kLeastPoints) return scale;
  const LeftOut left_out(process);
  std::vector<std::vector<int>> alone, together(std::clamp(n / kPointsPerGroup, 2, kMostGroups));
  for (int i = 0; i < n; ++i) alone.push_back({i});
  const std::vector<int> group = Neighbourhoods(points, static_cast<int>(together.size()));
  for (int i = 0; i < n; ++i) together[group[i]].push_back(i);
  // If all points are in one group, no points remain to learn from.
  std::erase_if(together, [&](const auto& members) {
    return members.empty() || static_cast<int>(members.size()) == n;
  });
  scale.slope = std::clamp(std::max(SlopeWithin(left_out, variance, scale.noise, alone),
                                    SlopeWithin(left_out, variance, scale.noise, together)),
                           kLeastSlope, kMostSlope);
  return scale;
}

}  // namespace hone::cost_model

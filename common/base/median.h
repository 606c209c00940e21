#ifndef HONE_COMMON_BASE_MEDIAN_H_
#define HONE_COMMON_BASE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"

namespace hone {

// Returns the median of the values, which are reordered; for an even number, the mean of the two in
// the middle. REQUIRES: values is not empty.
inline double MedianInPlace(absl::Span<double> values) {
  const size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + half, values.end());
  const double upper = values[half];
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + half)) / 2;
}

// The same for a copy of the values.
inline double Median(std::vector<double> values) { return MedianInPlace(absl::MakeSpan(values)); }

// Returns the q-quantile of the values, interpolated. REQUIRES: values is not empty.
inline double Quantile(std::vector<double> values, double q) {
  absl::c_sort(values);
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace hone

#endif  // HONE_COMMON_BASE_MEDIAN_H_

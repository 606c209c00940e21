#ifndef HONE_SERVER_LAB_STATISTICS_H_
#define HONE_SERVER_LAB_STATISTICS_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace hone::lab {

// The middle value; of an even number the mean of the two in the middle. REQUIRES values is not
// empty.
double Median(std::vector<double> values);
// REQUIRES values are positive and there is one.
double GeometricMean(const std::vector<double>& values);

// A number with the interval that holds it in 95 of 100 resamplings.
struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;
};

// Values of the seeds of one variant, per set.
using SeedValues = std::vector<std::vector<double>>;

// A number that is computed from the seeds' values of several variants, all on the same sets.
using Statistic = std::function<double(const std::vector<SeedValues>& variants)>;

// Its value and its percentile interval under the hierarchical bootstrap: sets are drawn with
// replacement, and in each of them, for every variant, its seeds. The same arguments give the same
// interval. REQUIRES every variant has the same number of sets, at least one, and a value for each.
Interval Bootstrap(const std::vector<SeedValues>& variants, const Statistic& statistic,
                   int resamplings = 1000, uint64_t seed = 1);

// Over sets, the geometric mean of median(numerator) / median(denominator).
double MedianRatio(const SeedValues& numerator, const SeedValues& denominator);
// Over sets, the geometric mean of the median of the seeds.
double MedianMean(const SeedValues& values);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_STATISTICS_H_

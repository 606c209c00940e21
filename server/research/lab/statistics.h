#ifndef HONE_SERVER_RESEARCH_LAB_STATISTICS_H_
#define HONE_SERVER_RESEARCH_LAB_STATISTICS_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace hone::lab {

// REQUIRES: values are positive and not empty.
double GeometricMean(const std::vector<double>& values);

struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;
};

// Values of the seeds of one variant, per set.
using SeedValues = std::vector<std::vector<double>>;

// A function of the seeds' values of several variants on the same sets.
using Statistic = std::function<double(const std::vector<SeedValues>& variants)>;

// Returns the statistic and its 95 % percentile interval from a hierarchical bootstrap, which
// resamples sets with replacement and, in each set, the seeds of every variant. Deterministic.
// REQUIRES: every variant has the same number of sets, at least one, and at least one value in
// each.
Interval Bootstrap(const std::vector<SeedValues>& variants, const Statistic& statistic,
                   int resamplings = 1000);

// Returns the geometric mean over sets of median(numerator) / median(denominator).
double MedianRatio(const SeedValues& numerator, const SeedValues& denominator);
// Returns the geometric mean over sets of the median over seeds.
double MedianMean(const SeedValues& values);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_STATISTICS_H_

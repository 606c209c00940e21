#include "server/research/lab/statistics.h"

#include <cmath>

#include "common/base/median.h"
#include "common/base/rng.h"

namespace hone::lab {
namespace {

constexpr double kTail = 0.025;  // on each side of a 95 % interval

}  // namespace

double GeometricMean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

Interval Bootstrap(const std::vector<SeedValues>& variants, const Statistic& statistic,
                   int resamplings) {
  const size_t sets = variants.front().size();
  std::vector<double> values;
  std::vector<SeedValues> drawn(variants.size());
  for (int i = 0; i < resamplings; ++i) {
    Rng rng(/*seed=*/1, static_cast<uint64_t>(i));
    for (SeedValues& each : drawn) each.assign(sets, {});
    for (size_t s = 0; s < sets; ++s) {
      const size_t set = rng.Below(sets);
      for (size_t v = 0; v < variants.size(); ++v) {
        const std::vector<double>& from = variants[v][set];
        for (size_t k = 0; k < from.size(); ++k) {
          drawn[v][s].push_back(from[rng.Below(from.size())]);
        }
      }
    }
    values.push_back(statistic(drawn));
  }
  return {statistic(variants), Quantile(values, kTail), Quantile(values, 1 - kTail)};
}

double MedianRatio(const SeedValues& numerator, const SeedValues& denominator) {
  std::vector<double> ratios;
  for (size_t s = 0; s < numerator.size(); ++s) {
    ratios.push_back(Median(numerator[s]) / Median(denominator[s]));
  }
  return GeometricMean(ratios);
}

double MedianMean(const SeedValues& values) {
  std::vector<double> medians;
  for (const std::vector<double>& seeds : values) medians.push_back(Median(seeds));
  return GeometricMean(medians);
}

}  // namespace hone::lab

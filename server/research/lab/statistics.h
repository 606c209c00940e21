#ifndef HONE_SERVER_RESEARCH_LAB_STATISTICS_H_
#define HONE_SERVER_RESEARCH_LAB_STATISTICS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "server/research/lab/run.h"

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

// Metrics of one run relative to the best known latency of its set. The "share" is the best known
// latency divided by the best latency so far: 1 once the best is found, 0 before the first result.

// Returns the share after each trial.
std::vector<double> ShareCurve(const RunResult& run, double best_latency_ns);
// Returns the share after `trials` trials; a run that ended earlier keeps its last share. REQUIRES:
// trials ≥ 1.
double ShareAt(const RunResult& run, double best_latency_ns, int64_t trials);
// Returns the number of trials until the share was reached; −1 if it never was.
int64_t TrialsTo(const RunResult& run, double best_latency_ns, double share);
// Returns the mean share over the first `trials` trials: the area under the curve, at most 1.
double Area(const RunResult& run, double best_latency_ns, int64_t trials);

// Returns the seconds until each trial's result: wall time for a live run, simulated time for a
// recorded run. In the simulation, all builders of the device work in parallel and one candidate
// runs after the other, with the recorded durations. If `brain`, the time that proposing and
// training took on this machine is added.
std::vector<double> Clock(const RunResult& run, int builders, bool brain);
// Returns the seconds until the share was reached; −1 if it never was.
double SecondsTo(const RunResult& run, double best_latency_ns, int builders, double share,
                 bool brain);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_STATISTICS_H_

#ifndef HONE_SERVER_RESEARCH_LAB_METRICS_H_
#define HONE_SERVER_RESEARCH_LAB_METRICS_H_

#include <cstdint>
#include <vector>

#include "server/research/lab/run.h"

namespace hone::lab {

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

#endif  // HONE_SERVER_RESEARCH_LAB_METRICS_H_

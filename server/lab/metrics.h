#ifndef HONE_SERVER_LAB_METRICS_H_
#define HONE_SERVER_LAB_METRICS_H_

#include <cstdint>
#include <vector>

#include "server/lab/run.h"

namespace hone::lab {

// Numbers of one run against the best known latency of its set. "Share" is best known over best so
// far: 1 when the best is found, 0 while nothing ran.

// After each trial.
std::vector<double> ShareCurve(const RunResult& run, double best_latency_ns);
// After `trials` trials; a run that ended earlier stays where it was. REQUIRES trials ≥ 1.
double ShareAt(const RunResult& run, double best_latency_ns, int64_t trials);
// How many trials it took to reach the share; −1: it never did.
int64_t TrialsTo(const RunResult& run, double best_latency_ns, double share);
// Mean share over the first `trials` trials: the area under its curve, 1 at most.
double Area(const RunResult& run, double best_latency_ns, int64_t trials);

// Seconds until each trial's result. Of a live run: as they passed. Of a recorded one simulated:
// the device builds with all its builders, then runs one candidate after the other, with the
// recorded durations; with `brain` also what proposing and training took here.
std::vector<double> Clock(const RunResult& run, int builders, bool brain);
// Seconds until the share was reached; −1: it never was.
double SecondsTo(const RunResult& run, double best_latency_ns, int builders, double share,
                 bool brain);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_METRICS_H_

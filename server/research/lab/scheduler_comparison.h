#ifndef HONE_SERVER_RESEARCH_LAB_SCHEDULER_COMPARISON_H_
#define HONE_SERVER_RESEARCH_LAB_SCHEDULER_COMPARISON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/research/lab/experiment.h"

namespace hone::lab {

// A comparison of task schedulers on networks whose tasks are recorded sets. For each seed there is
// one network, in which every set has a random weight from 1 to 8.
struct SchedulerComparison {
  std::vector<std::string> schedulers;  // the first one is the baseline
  std::vector<std::string> sets;        // names
  int seeds = 5;
  int64_t trials = 256;  // per network
  int batch = 8;         // trials per turn of a task
  std::string strategy = "portfolio";
  std::string cost_model = "xgboost";
};

// The network's latency, the weighted sum over its tasks, after a trial. 0 while the latency of a
// task is unknown.
struct NetworkPoint {
  double seconds = 0;  // device seconds so far
  double latency_ns = 0;
};

// The result of tuning one network with one scheduler.
struct NetworkRun {
  std::vector<double> weights;       // of the tasks
  std::vector<int64_t> task_trials;  // per task
  std::vector<NetworkPoint> points;  // after each trial
  double best_latency_ns = 0;        // with the best known kernel of each task

  double latency_ns() const { return points.empty() ? 0 : points.back().latency_ns; }
  // The number of trials until the network was this fast; −1 if it never was.
  int64_t TrialsTo(double latency_ns) const;
};

struct SchedulerResults {
  SchedulerComparison comparison;
  std::vector<std::vector<NetworkRun>> runs;  // [scheduler][seed]
};

// Tunes every network with every scheduler, in `threads` threads. REQUIRES: there is a bench for
// every set. Deterministic. InvalidArgument: no scheduler, set, seed
// or trial. NotFound: unknown scheduler, strategy or model.
absl::StatusOr<SchedulerResults> CompareSchedulers(const SchedulerComparison& comparison,
                                                   const Benches& benches, int threads);

// Returns Markdown: trials and device seconds until each scheduler reached the baseline's final
// latency, relative to the baseline's totals, and the final latencies, with 95 % intervals over the
// seeds. A run that never reached that latency counts with all of its trials.
std::string SchedulerText(const SchedulerResults& results);
// Returns CSV with one line for each trial that made a network faster.
std::string SchedulerCurvesCsv(const SchedulerResults& results);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_SCHEDULER_COMPARISON_H_

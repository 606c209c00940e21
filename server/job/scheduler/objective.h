#ifndef HONE_SERVER_JOB_SCHEDULER_OBJECTIVE_H_
#define HONE_SERVER_JOB_SCHEDULER_OBJECTIVE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hone::job {

// The best latency of a task after some of its trials.
struct ProgressPoint {
  int64_t trials = 0;
  double latency_ns = 0;
  friend bool operator==(const ProgressPoint&, const ProgressPoint&) = default;
};

// What a task scheduler knows of a task: one workload of one or several networks. Trials are given
// in batches; a batch that is granted but not measured yet is in flight.
struct TaskProgress {
  std::vector<double> weights;  // occurrences in each network; missing entries are 0
  std::string op;               // the workload's name
  double flops = 0;             // of the workload, by formula
  double expected_ns = 0;       // the latency by operations and bytes alone; 0: unknown
  double latency_ns = 0;        // the best so far; 0: none is known
  // The best after each batch, by ascending trials. Begins at trial 0 if a latency was known
  // before.
  std::vector<ProgressPoint> curve;
  int64_t earlier_trials = 0;  // of earlier jobs
  int64_t trials = 0;          // measured
  int64_t granted = 0;         // measured or in flight
  double seconds = 0;          // that the measured trials took
  bool open = true;            // whether the task can get trials
};

inline bool IsInFlight(const TaskProgress& task) { return task.granted > task.trials; }

// Returns whether the last `trials` trials of the task have not improved it.
inline bool HasStalled(const TaskProgress& task, int64_t trials) {
  const auto best =
      std::find_if(task.curve.begin(), task.curve.end(),
                   [&](const ProgressPoint& point) { return point.latency_ns <= task.latency_ns; });
  return trials > 0 && best != task.curve.end() && task.trials - best->trials >= trials;
}

// The objectives of Ansor (Zheng et al., OSDI 2020, table 2). w is the weight of task i in network
// j, and g its latency.
enum class ObjectiveKind {
  kLatency,        // f1: the sum of w·g
  kLatencyLimits,  // f2: the sum over networks of max(Σ w·g, limit of the network)
  kSpeedup,        // f3: the negative geometric mean over networks of reference / Σ w·g
  kEarlyStop,      // f4: as f1, but a task that has stalled cannot lower it any more
};

// "latency", "latency-limits", "speedup" and "early-stop".
std::vector<std::string> ObjectiveNames();
// InvalidArgument: unknown name; the message lists the names.
absl::StatusOr<ObjectiveKind> ObjectiveFromName(absl::string_view name);

// What the scheduler minimizes.
struct Objective {
  ObjectiveKind kind = ObjectiveKind::kLatency;
  std::vector<double> limits_ns;      // kLatencyLimits: by network; missing entries are 0
  std::vector<double> references_ns;  // kSpeedup: by network; missing entries are 1
  int64_t early_stop = 0;             // kEarlyStop: trials without improvement; 0: never

  // Returns the objective if task i had the latency latencies_ns[i]. A task with latency 0 is left
  // out. REQUIRES: as many latencies as tasks.
  double Cost(absl::Span<const TaskProgress> tasks, absl::Span<const double> latencies_ns) const;
  // Returns the derivative of the cost with respect to a task's latency, by a finite difference.
  double Slope(absl::Span<const TaskProgress> tasks, int task) const;
};

// Returns the latency of each network: the sum of weight · latency of its tasks. A network with a
// task of unknown latency has the sum of the others.
std::vector<double> NetworkLatencies(absl::Span<const TaskProgress> tasks,
                                     absl::Span<const double> latencies_ns);
// Returns the best latency of each task.
std::vector<double> BestLatencies(absl::Span<const TaskProgress> tasks);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SCHEDULER_OBJECTIVE_H_

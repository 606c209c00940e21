#ifndef HONE_SERVER_JOB_SCHEDULER_OBJECTIVE_H_
#define HONE_SERVER_JOB_SCHEDULER_OBJECTIVE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/job/scheduler/task_progress.h"

namespace hone::job {

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

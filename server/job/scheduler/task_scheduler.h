#ifndef HONE_SERVER_JOB_SCHEDULER_TASK_SCHEDULER_H_
#define HONE_SERVER_JOB_SCHEDULER_TASK_SCHEDULER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
  kSpeedup,        // f3: the negative geometric mean over networks of reference / Σ w·g, which may
                   // have weights of its own
  kEarlyStop,      // f4: as f1, but a task that has stalled cannot lower it any more
};

// "latency", "latency-limits", "speedup" and "early-stop".
std::vector<std::string> ObjectiveNames();
// InvalidArgument: unknown name; the message lists the names.
absl::StatusOr<ObjectiveKind> ObjectiveFromName(absl::string_view name);

// What the scheduler minimizes.
struct Objective {
  ObjectiveKind kind = ObjectiveKind::kLatency;
  std::vector<double> limits_ns;        // kLatencyLimits: by network; missing entries are 0
  std::vector<double> references_ns;    // kSpeedup: by network; missing entries are 1
  std::vector<double> network_weights;  // kSpeedup: positive, by network; missing entries are 1
  int64_t early_stop = 0;               // kEarlyStop: trials without improvement; 0: never

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

struct SchedulerOptions {
  Objective objective;
  int64_t batch = 8;  // trials that a task gets at a time
  uint64_t seed = 0;
};

// Selects the task of a network that gets the next batch of trials. The choice is a function of the
// options and the progress, so a restarted server makes the same choice. Not thread-safe.
class TaskScheduler {
 public:
  explicit TaskScheduler(SchedulerOptions options) : options_(std::move(options)) {}
  virtual ~TaskScheduler() = default;

  // Returns the index of the task. First, every task without a known latency gets a batch, those
  // with the largest expected share of the networks' time before the others. nullopt:
  // no task can get trials that lower the objective, or none until results arrive.
  std::optional<int> Next(absl::Span<const TaskProgress> tasks) const;

 protected:
  // Selects one of `choices`, the tasks that are open, have a latency and can lower the objective;
  // not empty, ascending.
  virtual int Choose(absl::Span<const TaskProgress> tasks, absl::Span<const int> choices) const = 0;
  const SchedulerOptions& options() const { return options_; }

 private:
  const SchedulerOptions options_;
};

// NotFound: unknown name; the message lists the names.
absl::StatusOr<std::unique_ptr<TaskScheduler>> CreateTaskScheduler(absl::string_view name,
                                                                   SchedulerOptions options);
std::vector<std::string> TaskSchedulerNames();
inline constexpr char kDefaultTaskScheduler[] = "expected-gain";

// A model of how the best latency of a task falls with its trials. Random search finds a new best
// with a probability that falls as 1 / trials, so improvements are a process in the logarithm of
// the number of trials n, with a rate s per unit of ln n:
//   E[ln latency(n) − ln latency(m)] = s · ln(m / n).
// The posterior mean of s, given a prior mean s₀ with the weight k and the observed improvements
// Δ ln latency over Δ ln n, is
//   s = (k·s₀ + Σ v·Δ ln latency) / (k + Σ v·Δ ln n).
// An observation that ended at trial m has the weight v = m / n, because the estimate must soon
// reflect that a search slows down. The prior mean s₀ is the same estimate over all tasks.
//
// Only the part of a latency above a lower bound can fall: the time of the task's operations at
// 1.25 times the highest speed of all tasks.
class Improvement {
 public:
  explicit Improvement(absl::Span<const TaskProgress> tasks);

  // Returns the rate s of a task.
  double Rate(const TaskProgress& task) const;
  // Returns the expected latency when the task has had this many trials in this job, which is not
  // below the number measured. REQUIRES: the task has a latency.
  double ExpectedLatency(const TaskProgress& task, int64_t trials) const;

 private:
  double prior_rate_;
  double peak_ = 0;  // operations per ns
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SCHEDULER_TASK_SCHEDULER_H_

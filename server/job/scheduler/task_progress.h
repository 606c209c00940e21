#ifndef HONE_SERVER_JOB_SCHEDULER_TASK_PROGRESS_H_
#define HONE_SERVER_JOB_SCHEDULER_TASK_PROGRESS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SCHEDULER_TASK_PROGRESS_H_

#ifndef HONE_SERVER_JOB_ACTOR_NETWORK_TYPES_H_
#define HONE_SERVER_JOB_ACTOR_NETWORK_TYPES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/job/scheduler/objective.h"
#include "server/job/scheduler/task_progress.h"

// The request and the state of a job of networks. proto/hone/v1/tuning.proto explains the fields.
namespace hone::job {

struct NetworkTaskSpec {
  std::string workload;  // text form, different in each task
  std::vector<double> weights;
  friend bool operator==(const NetworkTaskSpec&, const NetworkTaskSpec&) = default;
};

struct NetworkSpec {
  std::string name;
  std::vector<NetworkTaskSpec> tasks;  // never empty
  std::vector<std::string> network_names;
  std::string objective;  // never ""
  std::vector<double> limits_ns, references_ns;
  std::string scheduler;   // never ""
  int64_t patience = 0;    // 0: no limit
  int64_t early_stop = 0;  // trials of a task, for the objective "early-stop"
  bool only_missing = false;
  friend bool operator==(const NetworkSpec&, const NetworkSpec&) = default;
};

// A task as the job of networks stores it, so that it can be shown without the task's own job.
struct NetworkTaskState {
  std::string workload_digest;
  std::string op;
  double flops = 0;
  int64_t granted = 0;  // trials that its job was allowed
  int64_t trials = 0;   // measured
  int64_t earlier_trials = 0;
  double known_latency_ns = 0;    // of the best that was published before; 0: none
  double latency_ns = 0;          // best so far; 0: none
  double default_latency_ns = 0;  // confirmed, also by earlier jobs; 0: unknown
  double gflops = 0;
  double peak_gflops = 0;
  double seconds = 0;
  bool confirmed = false;  // latency_ns is of a published best
  bool disturbed = false;  // record::IsOnlyDisturbed of that best
  bool closed = false;     // gets no more trials
  std::string state;       // of its job (JobStateName); "": it has none
  std::string error;
  std::vector<ProgressPoint> curve;
};

// The total latency of all networks at some point of the job.
struct NetworkEstimate {
  int64_t wall_ms = 0;
  int64_t trials = 0;
  double latency_ns = 0;
  friend bool operator==(const NetworkEstimate&, const NetworkEstimate&) = default;
};

struct NetworkState {
  std::vector<NetworkTaskState> tasks;  // in the order of the request; empty until the job begins
  std::vector<NetworkEstimate> estimates;
};

// Returns what a scheduler needs to know. REQUIRES: the state has the tasks of the request.
std::vector<TaskProgress> ProgressOf(const NetworkSpec& spec, const NetworkState& state);
Objective ObjectiveOf(const NetworkSpec& spec);
// Return the weighted sum of the tasks' latencies over all networks; 0 if a latency is unknown.
double NetworkLatency(const NetworkSpec& spec, const NetworkState& state);
double DefaultNetworkLatency(const NetworkSpec& spec, const NetworkState& state);

// Returns the id of the job that tunes a task: "4711.3" is task 3 of job 4711.
std::string TaskJobId(absl::string_view network_job, size_t task);
inline bool IsTaskJobId(absl::string_view id) { return id.find('.') != absl::string_view::npos; }

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_NETWORK_TYPES_H_

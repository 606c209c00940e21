#include "client/connection/api_convert.h"
#include "common/base/status_macros.h"

namespace hone::client {

v1::NetworkRequest ToProto(const NetworkSpec& network) {
  v1::NetworkRequest request;
  request.set_name(network.name);
  for (const NetworkTask& task : network.tasks) {
    v1::NetworkTask& message = *request.add_tasks();
    message.set_workload(task.workload);
    message.mutable_weights()->Assign(task.weights.begin(), task.weights.end());
  }
  for (const Network& one : network.networks) {
    v1::Network& message = *request.add_networks();
    message.set_name(one.name);
    message.set_latency_limit_ns(one.latency_limit_ns);
    message.set_reference_ns(one.reference_ns);
  }
  request.set_objective(network.objective);
  request.set_scheduler(network.scheduler);
  request.set_patience(network.patience);
  request.set_early_stop(network.early_stop);
  request.set_only_missing(network.only_missing);
  return request;
}

absl::StatusOr<NetworkProgress> FromProto(const v1::NetworkProgress& message) {
  NetworkProgress progress{.name = message.name(),
                           .task_count = message.task_count(),
                           .latency_ns = message.latency_ns(),
                           .default_latency_ns = message.default_latency_ns()};
  if (message.has_confirmed()) progress.confirmed = message.confirmed();
  for (const v1::NetworkTaskProgress& from : message.tasks()) {
    NetworkTaskProgress& task = progress.tasks.emplace_back();
    task.workload = from.workload();
    task.workload_digest = from.workload_digest();
    task.op = from.operator_();
    task.weights.assign(from.weights().begin(), from.weights().end());
    task.job = from.job();
    if (from.state() != v1::JOB_STATE_UNSPECIFIED) {
      HONE_ASSIGN_OR_RETURN(const JobState state, FromProto(from.state()));
      task.state = std::string(JobStateName(state));
    }
    task.trials = from.trials();
    task.seconds = from.seconds();
    task.latency_ns = from.latency_ns();
    task.default_latency_ns = from.default_latency_ns();
    task.confirmed = from.confirmed();
    task.disturbed = from.disturbed();
    task.gflops = from.gflops();
    task.peak_gflops = from.peak_gflops();
    task.error = from.error();
  }
  for (const v1::NetworkEstimate& from : message.estimates()) {
    progress.estimates.push_back({from.wall_ms(), from.trials(), from.latency_ns()});
  }
  return progress;
}

}  // namespace hone::client

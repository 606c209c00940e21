#include "server/service/network_convert.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/job/scheduler/task_scheduler.h"
#include "server/service/field_error.h"
#include "server/service/job_convert.h"

namespace hone::service {
namespace {

constexpr char kSpeedup[] = "speedup";
constexpr char kEarlyStop[] = "early-stop";
constexpr char kLatencyLimits[] = "latency-limits";

bool IsAmount(double value) { return std::isfinite(value) && value >= 0; }

absl::Status CheckWeights(const v1::NetworkTask& task, int networks, const std::string& field) {
  bool occurs = false;
  for (const double weight : task.weights()) {
    if (!IsAmount(weight)) return FieldError(field, "a weight is not a number of occurrences");
    occurs = occurs || weight > 0;
  }
  if (!occurs) return FieldError(field, "the task occurs in no network");
  if (task.weights_size() <= std::max(1, networks)) return absl::OkStatus();
  return FieldError(field, absl::StrCat(task.weights_size(), " weights for ", std::max(1, networks),
                                        " networks"));
}

absl::Status ReadNetworks(const v1::NetworkRequest& request, job::NetworkSpec& spec) {
  if (request.networks_size() > kMostNetworks) {
    return FieldError("network.networks", absl::StrCat("more than ", kMostNetworks));
  }
  for (const v1::Network& network : request.networks()) {
    if (!IsAmount(network.latency_limit_ns()) || !IsAmount(network.reference_ns())) {
      return FieldError("network.networks", "a latency is not a number of nanoseconds");
    }
    if (spec.objective == kSpeedup && network.reference_ns() == 0) {
      return FieldError("network.networks.reference_ns", "missing for the objective speedup");
    }
    if (spec.objective == kLatencyLimits && network.latency_limit_ns() == 0) {
      return FieldError("network.networks.latency_limit_ns",
                        "missing for the objective latency-limits");
    }
    spec.network_names.push_back(network.name());
    spec.limits_ns.push_back(network.latency_limit_ns());
    spec.references_ns.push_back(network.reference_ns());
  }
  if (request.networks().empty() &&
      (spec.objective == kSpeedup || spec.objective == kLatencyLimits)) {
    return FieldError("network.networks",
                      absl::StrCat("missing for the objective ", spec.objective));
  }
  return absl::OkStatus();
}

absl::Status ReadTasks(const v1::NetworkRequest& request, const job::TaskEnvironment& environment,
                       job::NetworkSpec& spec) {
  if (request.tasks().empty()) return FieldError("network.tasks", "missing");
  if (request.tasks_size() > kMostNetworkTasks) {
    return FieldError("network.tasks", absl::StrCat("more than ", kMostNetworkTasks));
  }
  std::map<std::string, int> known;  // by digest
  for (int i = 0; i < request.tasks_size(); ++i) {
    const v1::NetworkTask& task = request.tasks(i);
    const std::string field = absl::StrCat("network.tasks[", i, "]");
    HONE_RETURN_IF_ERROR(CheckWeights(task, request.networks_size(), field));
    absl::StatusOr<job::WorkloadInfo> workload = environment.Describe(task.workload());
    if (!workload.ok()) return FieldError(field, workload.status().message());
    const auto [first, is_new] = known.try_emplace(workload->digest, i);
    if (!is_new) {
      return FieldError(
          field, absl::StrCat("task ", first->second, " has the same workload; add their weights"));
    }
    spec.tasks.push_back(
        {std::move(workload->text), {task.weights().begin(), task.weights().end()}});
  }
  return absl::OkStatus();
}

// Whether the sum of the tasks' latencies is confirmed.
bool IsConfirmed(const job::NetworkState& state) {
  return std::all_of(state.tasks.begin(), state.tasks.end(), [](const job::NetworkTaskState& task) {
    return task.confirmed && !task.disturbed;
  });
}

}  // namespace

absl::StatusOr<job::NetworkSpec> ToNetworkSpec(const v1::CreateJobRequest& request,
                                               const job::TaskEnvironment& environment) {
  if (!request.workload().empty())
    return FieldError("workload", "cannot be combined with a network");
  if (!request.workload_digest().empty()) {
    return FieldError("workload_digest", "cannot be combined with a network");
  }
  if (!request.space().empty())
    return FieldError("space", "not supported for networks, because each task has its own space");
  if (request.revalidate() != 0) return FieldError("revalidate", "not supported for networks");
  if (request.unpublished())
    return FieldError("unpublished",
                      "not supported for networks, which always publish their bests");
  const v1::NetworkRequest& network = request.network();
  if (network.patience() < 0) return FieldError("network.patience", "negative");
  if (network.early_stop() < 0) return FieldError("network.early_stop", "negative");
  job::NetworkSpec spec{.name = network.name(),
                        .patience = network.patience(),
                        .early_stop = network.early_stop(),
                        .only_missing = network.only_missing()};
  HONE_ASSIGN_OR_RETURN(spec.objective, Choose("network.objective", network.objective(), "latency",
                                               job::ObjectiveNames()));
  if (spec.objective == kEarlyStop && spec.early_stop == 0) {
    return FieldError("network.early_stop", "missing for the objective early-stop");
  }
  HONE_ASSIGN_OR_RETURN(spec.scheduler,
                        Choose("network.scheduler", network.scheduler(), job::kDefaultTaskScheduler,
                               job::TaskSchedulerNames()));
  HONE_RETURN_IF_ERROR(ReadNetworks(network, spec));
  HONE_RETURN_IF_ERROR(ReadTasks(network, environment, spec));
  return spec;
}

v1::NetworkRequest RequestToProto(const job::NetworkSpec& spec) {
  v1::NetworkRequest message;
  message.set_name(spec.name);
  for (size_t j = 0; j < spec.network_names.size(); ++j) {
    v1::Network& network = *message.add_networks();
    network.set_name(spec.network_names[j]);
    network.set_latency_limit_ns(spec.limits_ns[j]);
    network.set_reference_ns(spec.references_ns[j]);
  }
  message.set_objective(spec.objective);
  message.set_scheduler(spec.scheduler);
  message.set_patience(spec.patience);
  message.set_early_stop(spec.early_stop);
  message.set_only_missing(spec.only_missing);
  return message;
}

v1::NetworkProgress ProgressToProto(const job::JobSnapshot& job) {
  const job::NetworkSpec& spec = *job.spec.network;
  const job::NetworkState state = job.network.value_or(job::NetworkState());
  v1::NetworkProgress message;
  message.set_name(spec.name);
  message.set_task_count(static_cast<int>(spec.tasks.size()));
  message.set_latency_ns(job::NetworkLatency(spec, state));
  message.set_default_latency_ns(job::DefaultNetworkLatency(spec, state));
  if (!state.tasks.empty()) message.set_confirmed(IsConfirmed(state));
  for (size_t i = 0; i < spec.tasks.size(); ++i) {
    v1::NetworkTaskProgress& progress = *message.add_tasks();
    progress.set_workload(spec.tasks[i].workload);
    progress.mutable_weights()->Assign(spec.tasks[i].weights.begin(), spec.tasks[i].weights.end());
    if (i >= state.tasks.size()) continue;  // the job has not begun
    const job::NetworkTaskState& task = state.tasks[i];
    progress.set_workload_digest(task.workload_digest);
    progress.set_operator_(task.op);
    if (const auto known = job::JobStateFromName(task.state); known.ok()) {
      progress.set_job(job::TaskJobId(job.id, i));
      progress.set_state(ToProto(*known));
    }
    progress.set_trials(task.trials);
    progress.set_seconds(task.seconds);
    progress.set_latency_ns(task.latency_ns);
    progress.set_default_latency_ns(task.default_latency_ns);
    progress.set_confirmed(task.confirmed);
    progress.set_disturbed(task.disturbed);
    progress.set_gflops(task.gflops);
    progress.set_peak_gflops(task.peak_gflops);
    progress.set_error(task.error);
  }
  for (const job::NetworkEstimate& estimate : state.estimates) {
    v1::NetworkEstimate& entry = *message.add_estimates();
    entry.set_wall_ms(estimate.wall_ms);
    entry.set_trials(estimate.trials);
    entry.set_latency_ns(estimate.latency_ns);
  }
  return message;
}

}  // namespace hone::service

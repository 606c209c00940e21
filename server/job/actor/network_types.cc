#include "server/job/actor/network_types.h"

#include <numeric>

#include "absl/strings/str_cat.h"

namespace hone::job {
namespace {

double WeightedSum(const NetworkSpec& spec, const NetworkState& state,
                   double NetworkTaskState::* latency_ns) {
  double sum = 0;
  if (state.tasks.size() != spec.tasks.size()) return 0;
  for (size_t i = 0; i < state.tasks.size(); ++i) {
    const std::vector<double>& weights = spec.tasks[i].weights;
    const double latency = state.tasks[i].*latency_ns;
    if (!(latency > 0)) return 0;
    sum += latency * std::accumulate(weights.begin(), weights.end(), 0.0);
  }
  return sum;
}

}  // namespace

std::vector<TaskProgress> ProgressOf(const NetworkSpec& spec, const NetworkState& state) {
  std::vector<TaskProgress> tasks;
  for (size_t i = 0; i < state.tasks.size(); ++i) {
    const NetworkTaskState& task = state.tasks[i];
    tasks.push_back({.weights = spec.tasks[i].weights,
                     .op = task.op,
                     .flops = task.flops,
                     .latency_ns = task.latency_ns,
                     .curve = task.curve,
                     .earlier_trials = task.earlier_trials,
                     .trials = task.trials,
                     .granted = task.granted,
                     .seconds = task.seconds,
                     .open = !task.closed});
  }
  return tasks;
}

Objective ObjectiveOf(const NetworkSpec& spec) {
  return {.kind = ObjectiveFromName(spec.objective).value_or(ObjectiveKind::kLatency),
          .limits_ns = spec.limits_ns,
          .references_ns = spec.references_ns,
          .early_stop = spec.early_stop};
}

double NetworkLatency(const NetworkSpec& spec, const NetworkState& state) {
  return WeightedSum(spec, state, &NetworkTaskState::latency_ns);
}

double DefaultNetworkLatency(const NetworkSpec& spec, const NetworkState& state) {
  return WeightedSum(spec, state, &NetworkTaskState::default_latency_ns);
}

std::string TaskJobId(absl::string_view network_job, size_t task) {
  return absl::StrCat(network_job, ".", task);
}

}  // namespace hone::job

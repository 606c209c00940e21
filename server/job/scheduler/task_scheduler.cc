#include "server/job/scheduler/task_scheduler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hone::job {
namespace {

constexpr std::pair<ObjectiveKind, absl::string_view> kObjectives[] = {
    {ObjectiveKind::kLatency, "latency"},
    {ObjectiveKind::kLatencyLimits, "latency-limits"},
    {ObjectiveKind::kSpeedup, "speedup"},
    {ObjectiveKind::kEarlyStop, "early-stop"},
};

// The decrease from which a slope is computed, relative to the latency.
constexpr double kStep = 1e-4;

double At(const std::vector<double>& values, size_t index, double missing) {
  return index < values.size() ? values[index] : missing;
}

class RoundRobin final : public TaskScheduler {
 public:
  using TaskScheduler::TaskScheduler;

 private:
  int Choose(absl::Span<const TaskProgress> tasks, absl::Span<const int> choices) const override {
    return *std::min_element(choices.begin(), choices.end(),
                             [&](int a, int b) { return tasks[a].granted < tasks[b].granted; });
  }
};

struct Entry {
  absl::string_view name;
  std::unique_ptr<TaskScheduler> (*make)(SchedulerOptions options);
};

// One line per scheduler.
constexpr Entry kSchedulers[] = {
    {"expected-gain", MakeExpectedGainScheduler},
    {"gradient", MakeGradientScheduler},
    {"round-robin",
     [](SchedulerOptions options) -> std::unique_ptr<TaskScheduler> {
       return std::make_unique<RoundRobin>(std::move(options));
     }},
};

// How much of the networks' time a task is expected to take.
double ExpectedShare(const TaskProgress& task) {
  return task.expected_ns * std::accumulate(task.weights.begin(), task.weights.end(), 0.0);
}

// Of two tasks without a latency, the one that was granted fewer trials comes first, and then the
// one with the larger share, in case the time does not suffice for both.
bool ComesFirst(const TaskProgress& a, const TaskProgress& b) {
  if (a.granted != b.granted) return a.granted < b.granted;
  return ExpectedShare(a) > ExpectedShare(b);
}

}  // namespace

std::vector<std::string> ObjectiveNames() {
  std::vector<std::string> names;
  for (const auto& [kind, name] : kObjectives) names.emplace_back(name);
  return names;
}

absl::StatusOr<ObjectiveKind> ObjectiveFromName(absl::string_view name) {
  for (const auto& [kind, known] : kObjectives) {
    if (known == name) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no '", name, "'; there are: ", absl::StrJoin(ObjectiveNames(), ", ")));
}

std::vector<double> NetworkLatencies(absl::Span<const TaskProgress> tasks,
                                     absl::Span<const double> latencies_ns) {
  std::vector<double> sums;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const std::vector<double>& weights = tasks[i].weights;
    if (sums.size() < weights.size()) sums.resize(weights.size(), 0);
    for (size_t j = 0; j < weights.size(); ++j) sums[j] += weights[j] * latencies_ns[i];
  }
  return sums;
}

std::vector<double> BestLatencies(absl::Span<const TaskProgress> tasks) {
  std::vector<double> latencies;
  for (const TaskProgress& task : tasks) latencies.push_back(task.latency_ns);
  return latencies;
}

double Objective::Cost(absl::Span<const TaskProgress> tasks,
                       absl::Span<const double> latencies_ns) const {
  std::vector<double> effective(latencies_ns.begin(), latencies_ns.end());
  if (kind == ObjectiveKind::kEarlyStop) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (!HasStalled(tasks[i], early_stop)) continue;
      effective[i] = std::max(effective[i], tasks[i].latency_ns);
    }
  }
  const std::vector<double> sums = NetworkLatencies(tasks, effective);
  if (kind == ObjectiveKind::kLatencyLimits) {
    double cost = 0;
    for (size_t j = 0; j < sums.size(); ++j) cost += std::max(sums[j], At(limits_ns, j, 0));
    return cost;
  }
  if (kind == ObjectiveKind::kSpeedup) {
    double log = 0;
    for (size_t j = 0; j < sums.size(); ++j) {
      if (sums[j] > 0) log += std::log(At(references_ns, j, 1) / sums[j]);
    }
    return sums.empty() ? 0 : -std::exp(log / static_cast<double>(sums.size()));
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

double Objective::Slope(absl::Span<const TaskProgress> tasks, int task) const {
  std::vector<double> latencies = BestLatencies(tasks);
  const double step = kStep * latencies[task];
  if (!(step > 0)) return 0;
  const double now = Cost(tasks, latencies);
  latencies[task] -= step;
  return (now - Cost(tasks, latencies)) / step;
}

std::optional<int> TaskScheduler::Next(absl::Span<const TaskProgress> tasks) const {
  std::optional<int> unknown;
  std::vector<int> choices;
  for (int i = 0; i < static_cast<int>(tasks.size()); ++i) {
    const TaskProgress& task = tasks[i];
    if (!task.open) continue;
    if (task.latency_ns > 0) {
      if (options_.objective.Slope(tasks, i) > 0) choices.push_back(i);
    } else if (!IsInFlight(task) && (!unknown || ComesFirst(task, tasks[*unknown]))) {
      unknown = i;
    }
  }
  if (unknown) return unknown;
  if (choices.empty()) return std::nullopt;
  return Choose(tasks, choices);
}

absl::StatusOr<std::unique_ptr<TaskScheduler>> CreateTaskScheduler(absl::string_view name,
                                                                   SchedulerOptions options) {
  for (const Entry& entry : kSchedulers) {
    if (entry.name == name) return entry.make(std::move(options));
  }
  return absl::NotFoundError(absl::StrCat(
      "there is no '", name, "'; there are: ", absl::StrJoin(TaskSchedulerNames(), ", ")));
}

std::vector<std::string> TaskSchedulerNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kSchedulers) names.emplace_back(entry.name);
  return names;
}

}  // namespace hone::job

#include "server/job/scheduler/task_scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/rng.h"

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

// The baseline: selects the task that has had the fewest trials in this job.
class RoundRobin final : public TaskScheduler {
 public:
  using TaskScheduler::TaskScheduler;

 private:
  int Choose(absl::Span<const TaskProgress> tasks, absl::Span<const int> choices) const override {
    return *std::min_element(choices.begin(), choices.end(),
                             [&](int a, int b) { return tasks[a].granted < tasks[b].granted; });
  }
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

// The rate without any observation, and the weights of the prior means in units of ln n: after this
// much exposure, the observations count as much as the prior.
constexpr double kFirstRate = 0.1;
constexpr double kFirstWeight = 1;
constexpr double kPriorWeight = 0.5;
// How much faster than the fastest task so far the device is assumed to be.
constexpr double kHeadroom = 1.25;

struct Evidence {
  double improvement = 0;  // in ln latency
  double exposure = 0;     // in ln n
};

double TrialsAt(const TaskProgress& task, int64_t trials) {
  return static_cast<double>(std::max<int64_t>(1, task.earlier_trials + trials));
}

Evidence EvidenceOf(const TaskProgress& task) {
  Evidence evidence;
  const double now = TrialsAt(task, task.trials);
  for (size_t k = 1; k < task.curve.size(); ++k) {
    const ProgressPoint& from = task.curve[k - 1];
    const ProgressPoint& to = task.curve[k];
    const double n = TrialsAt(task, from.trials);
    const double m = TrialsAt(task, to.trials);
    const double weight = std::min(1.0, m / now);
    evidence.exposure += weight * std::log(m / n);
    evidence.improvement += weight * std::max(0.0, std::log(from.latency_ns / to.latency_ns));
  }
  return evidence;
}

// Returns the mean seconds per trial of all tasks; 1 if nothing was measured.
double MeanSeconds(absl::Span<const TaskProgress> tasks) {
  double seconds = 0;
  int64_t trials = 0;
  for (const TaskProgress& task : tasks) {
    if (task.seconds > 0) trials += task.trials;
    seconds += task.seconds;
  }
  return trials > 0 && seconds > 0 ? seconds / static_cast<double>(trials) : 1;
}

// Selects the task with the largest expected decrease of the objective per second. The decrease is
// that of Improvement; the seconds are those of the task's trials so far.
class ExpectedGain final : public TaskScheduler {
 public:
  using TaskScheduler::TaskScheduler;

 private:
  int Choose(absl::Span<const TaskProgress> tasks, absl::Span<const int> choices) const override {
    const Improvement model(tasks);
    const double mean_seconds = MeanSeconds(tasks);
    int best = choices[0];
    double highest = -std::numeric_limits<double>::infinity();
    for (const int i : choices) {
      const TaskProgress& task = tasks[i];
      const double seconds = task.trials > 0 && task.seconds > 0
                                 ? task.seconds / static_cast<double>(task.trials)
                                 : mean_seconds;
      const double gain = Gain(tasks, i, model) / seconds;
      if (gain <= highest) continue;
      highest = gain;
      best = i;
    }
    return best;
  }

  // The expected decrease of the objective by one more batch, after those in flight.
  double Gain(absl::Span<const TaskProgress> tasks, int i, const Improvement& model) const {
    const TaskProgress& task = tasks[i];
    std::vector<double> latencies = BestLatencies(tasks);
    latencies[i] = model.ExpectedLatency(task, task.granted);
    const double before = options().objective.Cost(tasks, latencies);
    latencies[i] = model.ExpectedLatency(task, task.granted + options().batch);
    return before - options().objective.Cost(tasks, latencies);
  }
};

constexpr double kAlpha = 0.2;
constexpr double kBeta = 2;
constexpr size_t kWindow = 3;  // Δt
constexpr double kEpsilon = 0.05;
constexpr double kGroupRatio = 1.618;

bool AreSimilar(const TaskProgress& a, const TaskProgress& b) {
  const auto size = [](const TaskProgress& task) {
    return std::floor(std::log(task.flops + 1) / std::log(kGroupRatio));
  };
  return a.op == b.op && size(a) == size(b);
}

// Ansor's gradient descent (Zheng et al., OSDI 2020, section 6), with the constants of its code.
// With t_i batches of task i and its latency g_i, selects the task with the smallest
//   ∂f/∂g_i · [ α·(g_i(t_i) − g_i(t_i − Δt)) / Δt
//              + (1 − α)·(min(g_i − g_i/t_i, β·C_i / max V_k) − g_i) ],
// where C_i is the number of operations and V_k the operations per time of a similar task: one of
// the same operator with the same ⌊log_1.618(C + 1)⌋. The second bound needs a similar task.
// Batches in flight and the trials of earlier jobs count in t_i. With probability 5 %, selects
// a random task.
class Gradient final : public TaskScheduler {
 public:
  using TaskScheduler::TaskScheduler;

 private:
  int Choose(absl::Span<const TaskProgress> tasks, absl::Span<const int> choices) const override {
    int64_t granted = 0;
    for (const TaskProgress& task : tasks) granted += task.granted;
    Rng rng(options().seed, static_cast<uint64_t>(granted));
    if (rng.Uniform() < kEpsilon) return choices[rng.Below(choices.size())];
    int best = choices[0];
    double lowest = std::numeric_limits<double>::infinity();
    for (const int i : choices) {
      const double gradient = GradientOf(tasks, i);
      if (gradient >= lowest) continue;
      lowest = gradient;
      best = i;
    }
    return best;
  }

  double GradientOf(absl::Span<const TaskProgress> tasks, int i) const {
    const TaskProgress& task = tasks[i];
    const double latency = task.latency_ns;
    double backward = 0;
    if (const size_t size = task.curve.size(); size > kWindow) {
      backward = (task.curve[size - 1].latency_ns - task.curve[size - 1 - kWindow].latency_ns) /
                 static_cast<double>(kWindow);
    }
    const int64_t batches =
        (task.earlier_trials + task.granted + options().batch - 1) / options().batch;
    double next = latency - latency / static_cast<double>(std::max<int64_t>(1, batches));
    double fastest = 0;  // of the similar tasks, in operations per nanosecond
    for (int k = 0; k < static_cast<int>(tasks.size()); ++k) {
      const TaskProgress& other = tasks[k];
      if (k == i || !(other.latency_ns > 0) || !AreSimilar(task, other)) continue;
      fastest = std::max(fastest, other.flops / other.latency_ns);
    }
    if (fastest > 0) {
      fastest = std::max(fastest, task.flops / latency);  // the task is similar to itself
      next = std::min(next, kBeta * task.flops / fastest);
    }
    return options().objective.Slope(tasks, i) *
           (kAlpha * backward + (1 - kAlpha) * (next - latency));
  }
};

template <typename Scheduler>
std::unique_ptr<TaskScheduler> Make(SchedulerOptions options) {
  return std::make_unique<Scheduler>(std::move(options));
}

struct Entry {
  absl::string_view name;
  std::unique_ptr<TaskScheduler> (*make)(SchedulerOptions options);
};

// One line per scheduler.
constexpr Entry kSchedulers[] = {
    {"expected-gain", Make<ExpectedGain>},
    {"gradient", Make<Gradient>},
    {"round-robin", Make<RoundRobin>},
};

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
    double log = 0, weights = 0;
    for (size_t j = 0; j < sums.size(); ++j) {
      const double weight = At(network_weights, j, 1);
      if (sums[j] > 0) log += weight * std::log(At(references_ns, j, 1) / sums[j]);
      weights += weight;
    }
    return sums.empty() ? 0 : -std::exp(log / weights);
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

Improvement::Improvement(absl::Span<const TaskProgress> tasks) {
  double improvement = kFirstWeight * kFirstRate;
  double exposure = kFirstWeight;
  for (const TaskProgress& task : tasks) {
    const Evidence evidence = EvidenceOf(task);
    improvement += evidence.improvement;
    exposure += evidence.exposure;
    if (task.latency_ns > 0) peak_ = std::max(peak_, kHeadroom * task.flops / task.latency_ns);
  }
  prior_rate_ = improvement / exposure;
}

double Improvement::Rate(const TaskProgress& task) const {
  const Evidence evidence = EvidenceOf(task);
  return (kPriorWeight * prior_rate_ + evidence.improvement) / (kPriorWeight + evidence.exposure);
}

double Improvement::ExpectedLatency(const TaskProgress& task, int64_t trials) const {
  const double grown = TrialsAt(task, trials) / TrialsAt(task, task.trials);
  const double least = peak_ > 0 ? std::min(task.latency_ns, task.flops / peak_) : 0;
  return least + (task.latency_ns - least) * std::pow(grown, -Rate(task));
}

}  // namespace hone::job

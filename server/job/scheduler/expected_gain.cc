#include <algorithm>
#include <cmath>
#include <limits>

#include "server/job/scheduler/task_scheduler.h"

namespace hone::job {
namespace {

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

}  // namespace

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

std::unique_ptr<TaskScheduler> MakeExpectedGainScheduler(SchedulerOptions options) {
  return std::make_unique<ExpectedGain>(std::move(options));
}

}  // namespace hone::job

#include <limits>

#include "server/job/scheduler/improvement.h"
#include "server/job/scheduler/task_scheduler.h"

namespace hone::job {
namespace {

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

std::unique_ptr<TaskScheduler> MakeExpectedGainScheduler(SchedulerOptions options) {
  return std::make_unique<ExpectedGain>(std::move(options));
}

}  // namespace hone::job

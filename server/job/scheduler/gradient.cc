#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/rng.h"
#include "server/job/scheduler/task_scheduler.h"

namespace hone::job {
namespace {

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

}  // namespace

std::unique_ptr<TaskScheduler> MakeGradientScheduler(SchedulerOptions options) {
  return std::make_unique<Gradient>(std::move(options));
}

}  // namespace hone::job

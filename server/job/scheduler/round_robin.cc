#include <algorithm>

#include "server/job/scheduler/task_scheduler.h"

namespace hone::job {
namespace {

class RoundRobin final : public TaskScheduler {
 public:
  using TaskScheduler::TaskScheduler;

 private:
  int Choose(absl::Span<const TaskProgress> tasks, absl::Span<const int> choices) const override {
    return *std::min_element(choices.begin(), choices.end(),
                             [&](int a, int b) { return tasks[a].granted < tasks[b].granted; });
  }
};

}  // namespace

std::unique_ptr<TaskScheduler> MakeRoundRobinScheduler(SchedulerOptions options) {
  return std::make_unique<RoundRobin>(std::move(options));
}

}  // namespace hone::job

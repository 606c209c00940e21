#ifndef HONE_SERVER_JOB_SCHEDULER_TASK_SCHEDULER_H_
#define HONE_SERVER_JOB_SCHEDULER_TASK_SCHEDULER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/job/scheduler/objective.h"
#include "server/job/scheduler/task_progress.h"

namespace hone::job {

struct SchedulerOptions {
  Objective objective;
  int64_t batch = 8;  // trials that a task gets at a time
  uint64_t seed = 0;
};

// Selects the task of a network that gets the next batch of trials. The choice is a function of the
// options and the progress, so a restarted server makes the same choice. Not thread-safe.
class TaskScheduler {
 public:
  explicit TaskScheduler(SchedulerOptions options) : options_(std::move(options)) {}
  virtual ~TaskScheduler() = default;

  // Returns the index of the task. First, every task without a known latency gets a batch. nullopt:
  // no task can get trials that lower the objective, or none until results arrive.
  std::optional<int> Next(absl::Span<const TaskProgress> tasks) const;

 protected:
  // Selects one of `choices`, the tasks that are open, have a latency and can lower the objective;
  // not empty, ascending.
  virtual int Choose(absl::Span<const TaskProgress> tasks, absl::Span<const int> choices) const = 0;
  const SchedulerOptions& options() const { return options_; }

 private:
  const SchedulerOptions options_;
};

// NotFound: unknown name; the message lists the names.
absl::StatusOr<std::unique_ptr<TaskScheduler>> CreateTaskScheduler(absl::string_view name,
                                                                   SchedulerOptions options);
std::vector<std::string> TaskSchedulerNames();
inline constexpr char kDefaultTaskScheduler[] = "expected-gain";

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SCHEDULER_TASK_SCHEDULER_H_

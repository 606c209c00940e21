#include "server/job/scheduler/task_scheduler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

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

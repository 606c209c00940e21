// Task schedulers on the tasks of networks.

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "server/job/scheduler/task_scheduler.h"
#include "server/research/lab/claims.h"

namespace hone::lab {
namespace {

constexpr int kGrant = 8;         // trials that a task gets at a time
constexpr int kMostOfTask = 128;  // trials
constexpr int kEarlyStop = 32;    // trials without improvement
// The latency limits of networks, in turn, as multiples of their best known latencies. The first
// network is below its limit as soon as all tasks have a result, the second one only if it gets
// most of the trials, so a scheduler that knows the limits chooses other tasks.
constexpr double kLimits[] = {1.25, 1.005};

// A task, and the trials of a search that has it alone.
struct NetworkTask {
  job::TaskProgress progress;
  ClaimRun search;
};

// The tasks of the networks, and what objectives refer to.
struct Networks {
  std::vector<NetworkTask> tasks;
  std::vector<double> best_ns;  // of each network: the sum of its tasks' best known latencies
};

absl::StatusOr<Networks> SearchTasks(const Claim& claim, const Sample& sample, int seed) {
  Networks networks;
  networks.best_ns.resize(claim.networks.size(), 0);
  for (const JudgedTask& task : sample.tasks) {
    const auto number =
        static_cast<size_t>(absl::c_find(claim.networks, task.family) - claim.networks.begin());
    if (number == claim.networks.size()) continue;
    HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(task.workload));
    NetworkTask made{.progress = {.op = workload.name, .flops = ir::FlopCount(workload)}};
    made.progress.weights.resize(claim.networks.size(), 0);
    made.progress.weights[number] = 1;
    const Claim pool{.name = claim.name, .device = ClaimDevice::kNetworks};
    HONE_ASSIGN_OR_RETURN(made.search,
                          RunOnSample(pool, {.label = task.name}, sample, task, seed, kMostOfTask));
    networks.best_ns[number] += task.best_ns;
    networks.tasks.push_back(std::move(made));
  }
  if (absl::c_linear_search(networks.best_ns, 0)) {
    return absl::NotFoundError(absl::StrCat(
        "the sample lacks tasks of ", absl::StrJoin(claim.networks, " or "),
        "; name one that was made from tests/bench/sample/tasks.txt, such as that of a Zen 3"));
  }
  return networks;
}

job::Objective ObjectiveOfKind(job::ObjectiveKind kind, const Networks& networks) {
  job::Objective objective{.kind = kind, .early_stop = kEarlyStop};
  for (size_t n = 0; n < networks.best_ns.size(); ++n) {
    objective.limits_ns.push_back(kLimits[n % std::size(kLimits)] * networks.best_ns[n]);
    objective.references_ns.push_back(networks.best_ns[n]);
  }
  return objective;
}

// A positive number that is lower if the networks are better.
double PositiveCost(const job::Objective& objective, absl::Span<const job::TaskProgress> tasks) {
  const double cost = objective.Cost(tasks, job::BestLatencies(tasks));
  return objective.kind == job::ObjectiveKind::kSpeedup ? -1 / cost : cost;
}

}  // namespace

absl::StatusOr<std::vector<ClaimRun>> RunOnNetworks(const Claim& claim, const Sample& sample,
                                                    int seed, int trials) {
  HONE_ASSIGN_OR_RETURN(const Networks networks, SearchTasks(claim, sample, seed));
  std::vector<job::Objective> goals;
  for (const std::string& task : claim.tasks) {
    HONE_ASSIGN_OR_RETURN(const job::ObjectiveKind kind, job::ObjectiveFromName(task));
    goals.push_back(ObjectiveOfKind(kind, networks));
  }
  std::vector<ClaimRun> all;
  for (const ClaimVariant& variant : claim.variants) {
    HONE_ASSIGN_OR_RETURN(const job::ObjectiveKind kind, job::ObjectiveFromName(variant.objective));
    HONE_ASSIGN_OR_RETURN(
        const auto scheduler,
        job::CreateTaskScheduler(variant.scheduler, {.objective = ObjectiveOfKind(kind, networks),
                                                     .batch = kGrant,
                                                     .seed = static_cast<uint64_t>(seed)}));
    std::vector<ClaimRun> runs;
    for (const std::string& task : claim.tasks) {
      runs.push_back({.claim = claim.name,
                      .device = ClaimDeviceName(claim.device),
                      .variant = variant.label,
                      .task = task,
                      .seed = seed,
                      .trials = trials});
    }
    std::vector<job::TaskProgress> tasks;
    for (const NetworkTask& task : networks.tasks) tasks.push_back(task.progress);
    double seconds = 0;
    while (static_cast<int>(runs[0].latency_ns.size()) < trials) {
      const std::optional<int> next = scheduler->Next(tasks);
      if (!next.has_value()) break;  // the objective cannot fall any more
      job::TaskProgress& task = tasks[*next];
      const ClaimRun& search = networks.tasks[*next].search;
      const auto measured = static_cast<int64_t>(search.latency_ns.size());
      for (int i = 0; i < kGrant && task.trials < measured; ++i) {
        const double latency_ns = search.latency_ns[task.trials];
        if (latency_ns > 0 && (task.latency_ns == 0 || latency_ns < task.latency_ns))
          task.latency_ns = latency_ns;
        const double before = task.trials > 0 ? search.seconds[task.trials - 1] : 0;
        task.seconds += search.seconds[task.trials] - before;
        seconds += search.seconds[task.trials] - before;
        ++task.trials;
        // A network has no latency before all of its tasks have one.
        const bool known = absl::c_all_of(
            tasks, [](const job::TaskProgress& each) { return each.latency_ns > 0; });
        for (size_t g = 0; g < goals.size(); ++g) {
          if (static_cast<int>(runs[g].latency_ns.size()) == trials) continue;
          runs[g].latency_ns.push_back(known ? PositiveCost(goals[g], tasks) : 0);
          runs[g].seconds.push_back(seconds);
          runs[g].device_seconds = seconds;
        }
      }
      task.granted = task.trials;
      task.open = task.trials < measured;
      if (task.latency_ns > 0) task.curve.push_back({task.trials, task.latency_ns});
    }
    for (ClaimRun& run : runs) {  // if the scheduler has ended early, the networks stay as they are
      run.latency_ns.resize(static_cast<size_t>(trials), run.latency_ns.back());
      run.seconds.resize(static_cast<size_t>(trials), run.seconds.back());
      all.push_back(std::move(run));
    }
  }
  return all;
}

}  // namespace hone::lab

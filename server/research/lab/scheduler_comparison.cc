#include "server/research/lab/scheduler_comparison.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/median.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"
#include "common/schedule/trace.h"
#include "server/job/actor/executor.h"
#include "server/job/scheduler/task_scheduler.h"
#include "server/research/lab/recorded_search.h"
#include "server/research/lab/statistics.h"

namespace hone::lab {
namespace {

constexpr uint64_t kWeightPurpose = 23;
constexpr uint64_t kMaxWeight = 8;

// Tunes one network. As in a job, the next task is selected while the previous batch is being
// measured.
class NetworkSearch {
 public:
  NetworkSearch(const SchedulerComparison& comparison, const Benches& benches, uint64_t seed)
      : comparison_(comparison), benches_(benches), seed_(seed) {}

  absl::StatusOr<NetworkRun> ToEnd(const std::string& scheduler_name) {
    HONE_ASSIGN_OR_RETURN(
        const std::unique_ptr<job::TaskScheduler> scheduler,
        job::CreateTaskScheduler(scheduler_name, {.batch = comparison_.batch, .seed = seed_}));
    HONE_RETURN_IF_ERROR(Open());
    int64_t granted = 0;
    while (true) {
      std::optional<int> next;
      if (granted < comparison_.trials) next = scheduler->Next(tasks_);
      if (!next.has_value() && in_flight_.empty()) break;
      if (next.has_value()) {
        HONE_ASSIGN_OR_RETURN(const int count, Grant(*next, comparison_.trials - granted));
        granted += count;
      }
      if (in_flight_.size() > 1 || !next.has_value()) HONE_RETURN_IF_ERROR(Measure());
    }
    for (const job::TaskProgress& task : tasks_) run_.task_trials.push_back(task.trials);
    return std::move(run_);
  }

 private:
  struct Batch {
    int task = 0;
    int count = 0;
  };

  absl::Status Open() {
    Rng rng(seed_, kWeightPurpose);
    for (const std::string& set : comparison_.sets) {
      const Bench& bench = *benches_.at(set);
      HONE_ASSIGN_OR_RETURN(const schedule::TraceFile file,
                            schedule::ParseTraceFile(bench.set().spaces[0]));
      const auto weight = static_cast<double>(1 + rng.Below(kMaxWeight));
      tasks_.push_back(
          {.weights = {weight}, .op = file.workload.name, .flops = ir::FlopCount(file.workload)});
      run_.weights.push_back(weight);
      run_.best_latency_ns += weight * bench.best_latency_ns();
      HONE_ASSIGN_OR_RETURN(searches_.emplace_back(),
                            RecordedSearch::Create(bench, {.strategy = comparison_.strategy,
                                                           .cost_model = comparison_.cost_model,
                                                           .seed = seed_,
                                                           .stop_at_best = false}));
    }
    return absl::OkStatus();
  }

  // Starts a batch of at most `most` trials of task i. Returns their number, which is 0 if the task
  // has nothing new to propose.
  absl::StatusOr<int> Grant(int i, int64_t most) {
    RecordedSearch& search = *searches_[i];
    const int64_t before = search.proposed();
    HONE_RETURN_IF_ERROR(
        search.Propose(static_cast<int>(std::min<int64_t>(comparison_.batch, most))));
    const auto count = static_cast<int>(search.proposed() - before);
    tasks_[i].granted += count;
    tasks_[i].open = !search.result().exhausted;
    if (count > 0) in_flight_.push_back({i, count});
    return count;
  }

  absl::Status Measure() {
    const auto [i, count] = in_flight_.front();
    in_flight_.pop_front();
    job::TaskProgress& task = tasks_[i];
    RecordedSearch& search = *searches_[i];
    const int builders = benches_.at(comparison_.sets[i])->builders();
    for (int each = 0; each < count; ++each) {
      search.Deliver();
      const RunTrial& trial = search.result().trials.back();
      const double seconds = (trial.build_ms / builders + trial.run_ms) * 1e-3;
      task.seconds += seconds;
      seconds_ += seconds;
      ++task.trials;
      if (trial.outcome == record::Outcome::kOk &&
          (task.latency_ns == 0 || trial.latency_ns < task.latency_ns)) {
        task.latency_ns = trial.latency_ns;
      }
      run_.points.push_back({seconds_, Latency()});
    }
    if (task.latency_ns > 0) task.curve.push_back({task.trials, task.latency_ns});
    return search.Train();
  }

  double Latency() const {
    double sum = 0;
    for (const job::TaskProgress& task : tasks_) {
      if (task.latency_ns == 0) return 0;
      sum += task.weights[0] * task.latency_ns;
    }
    return sum;
  }

  const SchedulerComparison& comparison_;
  const Benches& benches_;
  const uint64_t seed_;
  std::vector<job::TaskProgress> tasks_;
  std::vector<std::unique_ptr<RecordedSearch>> searches_;
  std::deque<Batch> in_flight_;
  double seconds_ = 0;
  NetworkRun run_;
};

// The statistics of one scheduler, with one value per seed.
struct Reached {
  SeedValues trials, seconds, latency;
  int runs = 0;  // number of runs that reached the latency
};

Reached ReachedBaseline(const SchedulerResults& results, size_t scheduler) {
  Reached reached{{{}}, {{}}, {{}}};
  for (size_t seed = 0; seed < results.runs[scheduler].size(); ++seed) {
    const NetworkRun& run = results.runs[scheduler][seed];
    const NetworkRun& baseline = results.runs[0][seed];
    const int64_t found = run.TrialsTo(baseline.latency_ns());
    if (found > 0) ++reached.runs;
    const size_t trials = found > 0 ? static_cast<size_t>(found) : run.points.size();
    reached.trials[0].push_back(static_cast<double>(trials) /
                                static_cast<double>(baseline.points.size()));
    reached.seconds[0].push_back(run.points[trials - 1].seconds / baseline.points.back().seconds);
    reached.latency[0].push_back(run.latency_ns() / baseline.latency_ns());
  }
  return reached;
}

std::string WithInterval(const SeedValues& values) {
  const Interval interval = Bootstrap(
      {values}, [](const std::vector<SeedValues>& variants) { return MedianMean(variants[0]); });
  return absl::StrFormat("%.2f (%.2f–%.2f)", interval.value, interval.low, interval.high);
}

}  // namespace

int64_t NetworkRun::TrialsTo(double latency_ns) const {
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].latency_ns > 0 && points[i].latency_ns <= latency_ns) {
      return static_cast<int64_t>(i) + 1;
    }
  }
  return -1;
}

absl::StatusOr<SchedulerResults> CompareSchedulers(const SchedulerComparison& comparison,
                                                   const Benches& benches, int threads) {
  if (comparison.schedulers.empty() || comparison.sets.empty() || comparison.seeds < 1 ||
      comparison.trials < 1 || comparison.batch < 1) {
    return absl::InvalidArgumentError(
        "a comparison of schedulers needs a scheduler, a set, a seed, and trials");
  }
  // Every run has its own element, so the threads need no lock.
  std::vector<std::vector<absl::StatusOr<NetworkRun>>> runs(
      comparison.schedulers.size(), std::vector<absl::StatusOr<NetworkRun>>(comparison.seeds));
  {
    job::ThreadPool pool(std::max(1, threads));
    for (size_t s = 0; s < runs.size(); ++s) {
      for (int seed = 0; seed < comparison.seeds; ++seed) {
        pool.Schedule([&, s, seed] {
          runs[s][seed] = NetworkSearch(comparison, benches, static_cast<uint64_t>(seed) + 1)
                              .ToEnd(comparison.schedulers[s]);
        });
      }
    }
  }
  SchedulerResults results{.comparison = comparison};
  for (std::vector<absl::StatusOr<NetworkRun>>& of_scheduler : runs) {
    std::vector<NetworkRun>& place = results.runs.emplace_back();
    for (absl::StatusOr<NetworkRun>& run : of_scheduler) {
      HONE_ASSIGN_OR_RETURN(place.emplace_back(), std::move(run));
      if (place.back().latency_ns() > 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          comparison.trials, " trials do not measure every set; give more with --trials"));
    }
  }
  return results;
}

std::string SchedulerText(const SchedulerResults& results) {
  const SchedulerComparison& comparison = results.comparison;
  std::string text = absl::StrFormat(
      "Networks of %d recorded sets with random weights from 1 to %d, %d trials each in batches of "
      "%d, %d seeds; %s with %s.\n\n"
      "| scheduler | trials to the latency of %s | device seconds | final latency | reached |\n"
      "|---|---|---|---|---|\n",
      comparison.sets.size(), kMaxWeight, comparison.trials, comparison.batch, comparison.seeds,
      comparison.strategy, comparison.cost_model, comparison.schedulers[0]);
  for (size_t s = 0; s < comparison.schedulers.size(); ++s) {
    const Reached reached = ReachedBaseline(results, s);
    absl::StrAppendFormat(&text, "| %s | %s | %s | %s | %d of %d |\n", comparison.schedulers[s],
                          WithInterval(reached.trials), WithInterval(reached.seconds),
                          WithInterval(reached.latency), reached.runs, comparison.seeds);
  }
  absl::StrAppend(&text, "\nMedians over the seeds with 95 % intervals, relative to all trials of ",
                  comparison.schedulers[0], ", to the seconds they took, and to its latency.\n\n");
  absl::StrAppend(&text, "| trials per task, median | ", absl::StrJoin(comparison.sets, " | "),
                  " |\n|---|");
  for (size_t i = 0; i < comparison.sets.size(); ++i) absl::StrAppend(&text, "---|");
  for (size_t s = 0; s < comparison.schedulers.size(); ++s) {
    absl::StrAppend(&text, "\n| ", comparison.schedulers[s], " |");
    for (size_t i = 0; i < comparison.sets.size(); ++i) {
      std::vector<double> trials;
      for (const NetworkRun& run : results.runs[s]) {
        trials.push_back(static_cast<double>(run.task_trials[i]));
      }
      absl::StrAppendFormat(&text, " %.0f |", Median(std::move(trials)));
    }
  }
  absl::StrAppend(&text, "\n");
  return text;
}

std::string SchedulerCurvesCsv(const SchedulerResults& results) {
  std::string csv = "scheduler,seed,trials,seconds,latency_ns,best_known_ns\n";
  for (size_t s = 0; s < results.runs.size(); ++s) {
    for (size_t seed = 0; seed < results.runs[s].size(); ++seed) {
      const NetworkRun& run = results.runs[s][seed];
      double last = 0;
      for (size_t i = 0; i < run.points.size(); ++i) {
        const NetworkPoint& point = run.points[i];
        if (point.latency_ns == last) continue;
        last = point.latency_ns;
        absl::StrAppendFormat(&csv, "%s,%d,%d,%.3f,%.1f,%.1f\n", results.comparison.schedulers[s],
                              seed + 1, i + 1, point.seconds, point.latency_ns,
                              run.best_latency_ns);
      }
    }
  }
  return csv;
}

}  // namespace hone::lab

#include "server/research/lab/compare.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/median.h"
#include "common/base/status_macros.h"
#include "server/research/lab/judge.h"
#include "server/research/lab/tune_process.h"

namespace hone::lab {
namespace {

constexpr double kShareOfBest = 0.95;
constexpr int kPoints[] = {1, 8, 16, 64};

absl::Status Check(const Comparison& comparison) {
  if (comparison.variants.empty() || comparison.tasks.empty() || comparison.seeds < 1)
    return absl::InvalidArgumentError("a comparison needs a variant, a task and a seed");
  std::set<std::string> labels;
  for (const Variant& variant : comparison.variants) {
    if (labels.insert(variant.label).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("two variants are called ", variant.label));
  }
  return absl::OkStatus();
}

absl::StatusOr<ComparedRun> Run(const Comparison& comparison, size_t v, size_t t, int seed) {
  const Variant& variant = comparison.variants[v];
  const SampleTask& task = comparison.tasks[t];
  // Not the store: the same run with another one has another label.
  const std::string run_text = absl::StrJoin(
      {task.workload, variant.label, variant.strategy, variant.cost_model, variant.feature_set,
       absl::StrCat(comparison.trials), absl::StrCat(seed), absl::StrJoin(comparison.options, " ")},
      "\n");
  const std::string folder =
      absl::StrCat(comparison.work_folder, "/", DigestOf(run_text).ToHex().substr(0, 16));
  const std::string store = folder + "/hone/hone.db", finished = folder + "/finished";
  int64_t before = 0;  // records of the store that it began with
  const absl::StatusOr<std::string> known = ReadFile(finished);
  if (!known.ok() || !absl::SimpleAtoi(*known, &before)) {
    before = 0;
    std::error_code ignored;  // an interrupted run may have left files
    std::filesystem::remove_all(folder, ignored);
    HONE_RETURN_IF_ERROR(MakeDirectories(folder + "/hone"));
    if (!variant.store.empty()) {
      std::filesystem::copy_file(variant.store, store, ignored);
      if (ignored) return absl::NotFoundError(absl::StrCat(variant.store, ": ", ignored.message()));
      HONE_ASSIGN_OR_RETURN(const auto results, ReadStoreResults(store));
      if (!results.empty()) before = results.back().record.id;
    }
    const std::string workload = folder + "/workload.hone";
    HONE_RETURN_IF_ERROR(WriteFileAtomically(workload, task.workload));
    TuneProcess process{.program_folder = comparison.program_folder,
                        .data_folder = folder,
                        .words = {workload, "--trials", absl::StrCat(comparison.trials), "--seed",
                                  absl::StrCat(seed)},
                        .interrupt_at = "confirming"};
    const auto add = [&](const char* option, const std::string& value) {
      if (!value.empty()) process.words.insert(process.words.end(), {option, value});
    };
    add("--strategy", variant.strategy);
    add("--cost-model", variant.cost_model);
    add("--feature-set", variant.feature_set);
    process.words.insert(process.words.end(), comparison.options.begin(), comparison.options.end());
    HONE_RETURN_IF_ERROR(RunTune(process).status());
    HONE_RETURN_IF_ERROR(WriteFileAtomically(finished, absl::StrCat(before)));
  }
  ComparedRun run{.variant = v, .task = t, .seed = seed, .store = store};
  HONE_ASSIGN_OR_RETURN(const std::vector<StoreResult> results, ReadStoreResults(store));
  for (const StoreResult& result : results) {
    if (result.record.id <= before) continue;
    const bool ok = result.record.result.outcome == record::Outcome::kOk;
    run.latency_ns.push_back(ok ? record::SteadyLatencyNs(result.record.result) : 0);
    run.seconds = result.elapsed_ms / 1e3;
    run.elapsed.push_back(run.seconds);
    run.device_seconds += result.run_ms / 1e3;
  }
  return run;
}

// The progress of one run, relative to the best known latency.
struct Progress {
  const ComparedRun* run;
  std::vector<double> best_so_far;  // over the best known
  double BestOf(int trials) const {
    return best_so_far[std::min<size_t>(trials, best_so_far.size()) - 1];
  }
  // A run that never got there counts with all of its trials, so that the result is a lower bound.
  double TrialsToShare() const {
    for (size_t i = 0; i < best_so_far.size(); ++i) {
      if (best_so_far[i] * kShareOfBest <= 1) return static_cast<double>(i + 1);
    }
    return static_cast<double>(best_so_far.size());
  }
};

std::vector<Progress> ProgressOf(const Comparison& comparison,
                                 const std::vector<ComparedRun>& runs) {
  std::vector<double> best(comparison.tasks.size(), 0), worst(comparison.tasks.size(), 0);
  for (size_t t = 0; t < best.size(); ++t) {
    const auto known = comparison.best_ns.find(comparison.tasks[t].workload);
    if (known != comparison.best_ns.end()) best[t] = known->second;
  }
  for (const ComparedRun& run : runs) {
    for (const double latency : run.latency_ns) {
      if (latency > 0 && (best[run.task] == 0 || latency < best[run.task]))
        best[run.task] = latency;
      worst[run.task] = std::max(worst[run.task], latency);
    }
  }
  std::vector<Progress> all;
  for (const ComparedRun& run : runs) {
    // If no run of a task had a valid result, nothing can be said about it.
    if (run.latency_ns.empty() || best[run.task] == 0 || worst[run.task] == 0) continue;
    Progress progress{.run = &run};
    double so_far = worst[run.task];
    for (const double latency : run.latency_ns) {
      if (latency > 0) so_far = std::min(so_far, latency);
      progress.best_so_far.push_back(so_far / best[run.task]);
    }
    all.push_back(std::move(progress));
  }
  return all;
}

// Returns the statistic exp(mean(log(value))) over runs of a variant, clustered by family.
Interval MeanOver(const Comparison& comparison, const std::vector<Progress>& all, size_t variant,
                  const std::function<double(const Progress&)>& value) {
  std::vector<TaskScore> scores;
  for (const Progress& progress : all) {
    if (progress.run->variant != variant) continue;
    scores.push_back(
        {.family = comparison.tasks[progress.run->task].family, .first = value(progress)});
  }
  return ClusteredBootstrap(scores, [](const std::vector<const TaskScore*>& some) {
    double sum = 0;
    for (const TaskScore* score : some) sum += std::log(score->first);
    return std::exp(sum / static_cast<double>(some.size()));
  });
}

std::string Text(const Interval& interval) {
  return absl::StrFormat("%.2f (%.2f–%.2f)", interval.value, interval.low, interval.high);
}

}  // namespace

absl::StatusOr<std::vector<ComparedRun>> Compare(const Comparison& comparison) {
  HONE_RETURN_IF_ERROR(Check(comparison));
  std::vector<ComparedRun> runs;
  for (size_t t = 0; t < comparison.tasks.size(); ++t) {
    for (int seed = 1; seed <= comparison.seeds; ++seed) {
      for (size_t v = 0; v < comparison.variants.size(); ++v) {
        std::fprintf(stderr, "task %zu of %zu, %s: %s\n", t + 1, comparison.tasks.size(),
                     comparison.variants[v].label.c_str(), comparison.tasks[t].name.c_str());
        HONE_ASSIGN_OR_RETURN(ComparedRun run, Run(comparison, v, t, seed));
        runs.push_back(std::move(run));
      }
    }
  }
  return runs;
}

absl::StatusOr<ComparedRun> CompareOne(const Comparison& comparison, int seed) {
  HONE_RETURN_IF_ERROR(Check(comparison));
  return Run(comparison, /*v=*/0, /*t=*/0, seed);
}

std::string ComparisonText(const Comparison& comparison, const std::vector<ComparedRun>& runs) {
  const std::vector<Progress> all = ProgressOf(comparison, runs);
  // By task and seed: the trials of the first variant.
  std::map<std::pair<size_t, int>, double> base;
  for (const Progress& progress : all) {
    if (progress.run->variant == 0)
      base[{progress.run->task, progress.run->seed}] = progress.TrialsToShare();
  }
  std::string text = absl::StrFormat(
      "%d tasks, %d seeds, at most %d trials\n\n| variant | first | of 8 | of 16 | of 64 | of all "
      "| "
      "trials to 95 %% | worst quarter | ratio of trials | s "
      "|\n|---|---|---|---|---|---|---|---|---|"
      "---|\n",
      comparison.tasks.size(), comparison.seeds, comparison.trials);
  for (size_t v = 0; v < comparison.variants.size(); ++v) {
    absl::StrAppend(&text, "| ", comparison.variants[v].label, " |");
    for (const int point : kPoints) {
      absl::StrAppend(&text, " ",
                      Text(MeanOver(comparison, all, v,
                                    [point](const Progress& one) { return one.BestOf(point); })),
                      " |");
    }
    absl::StrAppend(&text, " ",
                    Text(MeanOver(comparison, all, v,
                                  [](const Progress& one) { return one.best_so_far.back(); })),
                    " |");
    std::vector<double> trials, seconds;
    for (const Progress& progress : all) {
      if (progress.run->variant != v) continue;
      trials.push_back(progress.TrialsToShare());
      seconds.push_back(progress.run->seconds);
    }
    const Interval ratio = MeanOver(comparison, all, v, [&](const Progress& one) {
      const auto first = base.find({one.run->task, one.run->seed});
      return first == base.end() ? 1 : one.TrialsToShare() / first->second;
    });
    absl::StrAppendFormat(&text, " %.0f | %.0f | %s | %.1f |\n", Quantile(trials, 0.5),
                          Quantile(trials, 0.75), Text(ratio), Quantile(seconds, 0.5));
  }
  absl::StrAppend(
      &text,
      "\nFirst trial, best of 8 and of all, and trials to 95 %, of the first seed:\n\n| task |");
  std::string rule = "\n|---|";
  for (const Variant& variant : comparison.variants) {
    absl::StrAppend(&text, " ", variant.label, " |");
    absl::StrAppend(&rule, "---|");
  }
  absl::StrAppend(&text, rule, "\n");
  for (size_t t = 0; t < comparison.tasks.size(); ++t) {
    absl::StrAppend(&text, "| ", comparison.tasks[t].name, " |");
    for (size_t v = 0; v < comparison.variants.size(); ++v) {
      const auto found = std::ranges::find_if(all, [&](const Progress& progress) {
        return progress.run->variant == v && progress.run->task == t && progress.run->seed == 1;
      });
      if (found == all.end()) {
        absl::StrAppend(&text, " none |");
        continue;
      }
      absl::StrAppendFormat(&text, " %.2f, %.2f, %.2f, %.0f |", found->BestOf(1), found->BestOf(8),
                            found->best_so_far.back(), found->TrialsToShare());
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

std::string ComparisonCsv(const Comparison& comparison, const std::vector<ComparedRun>& runs) {
  std::string csv = "variant,task,seed,trials,first,of_8,of_16,of_64,of_all,trials_95,seconds\n";
  for (const Progress& progress : ProgressOf(comparison, runs)) {
    const ComparedRun& run = *progress.run;
    absl::StrAppendFormat(&csv, "%s,%s,%d,%d", comparison.variants[run.variant].label,
                          comparison.tasks[run.task].name, run.seed, run.latency_ns.size());
    for (const int point : kPoints) absl::StrAppendFormat(&csv, ",%.4f", progress.BestOf(point));
    absl::StrAppendFormat(&csv, ",%.4f,%.0f,%.1f\n", progress.best_so_far.back(),
                          progress.TrialsToShare(), run.seconds);
  }
  return csv;
}

}  // namespace hone::lab

#include "server/research/lab/live.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "server/research/lab/tune_process.h"

namespace hone::lab {
namespace {

RunResult RunOf(const std::vector<StoreResult>& results) {
  RunResult run;
  for (const StoreResult& result : results) {
    const record::MeasureResult& measured = result.record.result;
    const bool ok = measured.outcome == record::Outcome::kOk;
    run.trials.push_back({.outcome = measured.outcome,
                          .latency_ns = ok ? record::SteadyLatencyNs(measured) : 0,
                          .build_ms = measured.facts.compile_ms + measured.facts.link_ms,
                          .run_ms = result.run_ms,
                          .elapsed_ms = result.elapsed_ms});
    run.failures += !ok;
  }
  return run;
}

// The options of a job that affect all variants.
std::vector<std::string> JobWords(const Experiment& experiment, const LiveOptions& options) {
  std::vector<std::string> words;
  if (!options.target.empty()) words.insert(words.end(), {"--target", options.target});
  if (!experiment.space.empty()) words.insert(words.end(), {"--space", experiment.space});
  if (experiment.tolerance > 0)
    words.insert(words.end(), {"--tolerance", absl::StrCat(experiment.tolerance)});
  return words;
}

absl::StatusOr<RunResult> Tune(const Experiment& experiment, const Variant& variant,
                               const std::string& set, int seed, const LiveOptions& options) {
  const std::vector<std::string> job = JobWords(experiment, options);
  const std::string folder =
      absl::StrCat(options.work_folder, "/", set, "-", variant.label, "-", experiment.trials, "-",
                   seed, absl::StrJoin(job, "", [](std::string* out, const std::string& word) {
                     if (word[0] != '-') absl::StrAppend(out, "-", word);
                   }));
  const std::string store = folder + "/hone/hone.db";
  const std::string workload = folder + "/workload.hone";
  const std::string finished = folder + "/result.json";
  if (!ReadFile(finished).ok()) {
    std::error_code ignored;  // an interrupted run may have left files
    std::filesystem::remove_all(folder, ignored);
    HONE_RETURN_IF_ERROR(MakeDirectories(folder));
    HONE_RETURN_IF_ERROR(WriteFileAtomically(workload, options.workloads.at(set)));
    TuneProcess process{
        .program_folder = options.program_folder,
        .data_folder = folder,
        .words = {workload, "--strategy", variant.strategy, "--cost-model", variant.cost_model,
                  "--trials", absl::StrCat(experiment.trials), "--seed", absl::StrCat(seed)}};
    process.words.insert(process.words.end(), job.begin(), job.end());
    if (!variant.feature_set.empty()) {
      process.words.insert(process.words.end(), {"--feature-set", variant.feature_set});
    }
    HONE_ASSIGN_OR_RETURN(const std::string json, RunTune(process));
    HONE_RETURN_IF_ERROR(WriteFileAtomically(finished, json));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<StoreResult> results, ReadStoreResults(store));
  RunResult run = RunOf(results);
  HONE_ASSIGN_OR_RETURN(run.confirmed_ns, ReadPublishedLatencyNs(store));
  return run;
}

}  // namespace

absl::StatusOr<Results> RunLive(const Experiment& experiment, const LiveOptions& options) {
  HONE_RETURN_IF_ERROR(CheckExperiment(experiment));
  if (experiment.batch != 0) {
    return absl::InvalidArgumentError(
        "--batch cannot be used with --live: a job chooses its own batch size");
  }
  Results results{.experiment = experiment};
  results.builders.assign(experiment.sets.size(),
                          static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  results.best_latency_ns.assign(experiment.sets.size(), INFINITY);
  for (const Variant& variant : experiment.variants) {
    if (variant.limited_space || !variant.related.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          variant.label,
          ": limited spaces and results of other sets are supported only on recorded sets"));
    }
    results.runs.emplace_back(experiment.sets.size());
  }
  for (size_t s = 0; s < experiment.sets.size(); ++s) {
    for (int seed = 1; seed <= experiment.seeds; ++seed) {
      for (size_t v = 0; v < experiment.variants.size(); ++v) {
        HONE_ASSIGN_OR_RETURN(RunResult run, Tune(experiment, experiment.variants[v],
                                                  experiment.sets[s], seed, options));
        for (const RunTrial& trial : run.trials) {
          if (trial.outcome != record::Outcome::kOk) continue;
          results.best_latency_ns[s] = std::min(results.best_latency_ns[s], trial.latency_ns);
        }
        results.runs[v][s].push_back(std::move(run));
      }
    }
  }
  for (size_t s = 0; s < experiment.sets.size(); ++s) {
    if (std::isinf(results.best_latency_ns[s])) {
      return absl::AbortedError(absl::StrCat("no candidate of ", experiment.sets[s], " ran"));
    }
  }
  return results;
}

}  // namespace hone::lab

#include "server/research/lab/experiment.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/job/actor/executor.h"

namespace hone::lab {
namespace {

// Opens benches of the sets' limited spaces, for the variants that need them.
absl::StatusOr<Benches> LimitedBenches(const Experiment& experiment, const Benches& benches) {
  Benches limited;
  for (const Variant& variant : experiment.variants) {
    if (!variant.limited_space || !limited.empty()) continue;
    for (const std::string& set : experiment.sets) {
      HONE_ASSIGN_OR_RETURN(limited[set],
                            Bench::Open(WithoutLayoutChanges(benches.at(set)->set())));
    }
  }
  return limited;
}

}  // namespace

size_t Results::baseline() const {
  size_t index = 0;
  while (experiment.variants[index].label != experiment.baseline) ++index;
  return index;
}

absl::Status CheckExperiment(const Experiment& experiment) {
  if (experiment.variants.empty() || experiment.sets.empty() || experiment.seeds < 1) {
    return absl::InvalidArgumentError("a comparison needs a variant, a set and a seed");
  }
  std::set<std::string> labels;
  for (const Variant& variant : experiment.variants) {
    if (!labels.insert(variant.label).second) {
      return absl::InvalidArgumentError(absl::StrCat("two variants are called ", variant.label));
    }
  }
  if (labels.contains(experiment.baseline)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the baseline '", experiment.baseline, "' is not one of the variants"));
}

absl::StatusOr<Results> RunExperiment(const Experiment& experiment, const Benches& benches,
                                      int threads) {
  HONE_RETURN_IF_ERROR(CheckExperiment(experiment));
  HONE_ASSIGN_OR_RETURN(const Benches limited, LimitedBenches(experiment, benches));
  Results results{.experiment = experiment};
  for (const std::string& set : experiment.sets) {
    results.best_latency_ns.push_back(benches.at(set)->best_latency_ns());
    results.builders.push_back(benches.at(set)->builders());
  }
  // Every run has its own element, so the threads need no lock.
  using RunPlaces = std::vector<absl::StatusOr<RunResult>>;
  std::vector<std::vector<RunPlaces>> runs(
      experiment.variants.size(),
      std::vector<RunPlaces>(experiment.sets.size(), RunPlaces(experiment.seeds)));
  {
    job::ThreadPool pool(std::max(1, threads));
    for (size_t v = 0; v < experiment.variants.size(); ++v) {
      const Variant& variant = experiment.variants[v];
      for (size_t s = 0; s < experiment.sets.size(); ++s) {
        const Benches& from = variant.limited_space ? limited : benches;
        const Bench* const bench = from.at(experiment.sets[s]).get();
        const Bench* const related =
            variant.related.empty() ? nullptr : benches.at(variant.related).get();
        for (int seed = 0; seed < experiment.seeds; ++seed) {
          pool.Schedule([&experiment, &variant, bench, related, seed, &place = runs[v][s][seed]] {
            place = RunSearch(*bench, {.strategy = variant.strategy,
                                       .cost_model = variant.cost_model,
                                       .feature_set = variant.feature_set,
                                       .seed = static_cast<uint64_t>(seed) + 1,
                                       .trials = experiment.trials,
                                       .batch = experiment.batch,
                                       .related = related,
                                       .related_seeds = variant.related_seeds});
          });
        }
      }
    }
  }
  for (size_t v = 0; v < runs.size(); ++v) {
    results.runs.emplace_back(experiment.sets.size());
    for (size_t s = 0; s < runs[v].size(); ++s) {
      for (absl::StatusOr<RunResult>& run : runs[v][s]) {
        if (!run.ok()) {
          return absl::Status(run.status().code(),
                              absl::StrCat(experiment.variants[v].label, " on ", experiment.sets[s],
                                           ": ", run.status().message()));
        }
        results.runs[v][s].push_back(*std::move(run));
      }
    }
  }
  return results;
}

}  // namespace hone::lab

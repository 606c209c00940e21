#include "server/lab/experiment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/task/executor.h"

namespace hone::lab {
namespace {

absl::Status Check(const Experiment& experiment) {
  if (experiment.variants.empty() || experiment.sets.empty() || experiment.seeds < 1) {
    return absl::InvalidArgumentError("a comparison needs a variant, a set and a seed");
  }
  for (const Variant& variant : experiment.variants) {
    if (variant.label == experiment.baseline) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the baseline '", experiment.baseline, "' is none of the variants"));
}

}  // namespace

size_t Results::baseline() const {
  size_t index = 0;
  while (experiment.variants[index].label != experiment.baseline) ++index;
  return index;
}

absl::StatusOr<Results> RunExperiment(const Experiment& experiment,
                                      const std::vector<std::unique_ptr<Bench>>& benches,
                                      int threads) {
  if (absl::Status status = Check(experiment); !status.ok()) return status;
  Results results{.experiment = experiment};
  for (const auto& bench : benches) {
    results.best_latency_ns.push_back(bench->best_latency_ns());
    results.builders.push_back(bench->builders());
  }
  absl::Mutex mutex;
  absl::Status first_error;
  results.runs.resize(experiment.variants.size());
  {
    task::ThreadPool pool(std::max(1, threads));
    for (size_t v = 0; v < experiment.variants.size(); ++v) {
      results.runs[v].resize(benches.size());
      for (size_t s = 0; s < benches.size(); ++s) {
        results.runs[v][s].resize(experiment.seeds);
        for (int seed = 0; seed < experiment.seeds; ++seed) {
          pool.Schedule([&, v, s, seed] {
            const Variant& variant = experiment.variants[v];
            absl::StatusOr<RunResult> run =
                RunSearch(*benches[s], {.strategy = variant.strategy,
                                        .cost_model = variant.cost_model,
                                        .feature_set = variant.feature_set,
                                        .seed = static_cast<uint64_t>(seed) + 1,
                                        .trials = experiment.trials,
                                        .batch = experiment.batch});
            absl::MutexLock lock(&mutex);
            if (run.ok()) {
              results.runs[v][s][seed] = *std::move(run);
            } else if (first_error.ok()) {
              first_error = absl::Status(
                  run.status().code(), absl::StrCat(variant.label, " on ", experiment.sets[s], ": ",
                                                    run.status().message()));
            }
          });
        }
      }
    }
  }
  if (!first_error.ok()) return first_error;
  return results;
}

}  // namespace hone::lab

#ifndef HONE_SERVER_LAB_EXPERIMENT_H_
#define HONE_SERVER_LAB_EXPERIMENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/lab/run.h"

namespace hone::lab {

// One of the things that are compared.
struct Variant {
  std::string label;
  std::string strategy;
  std::string cost_model = "xgboost";
  std::string feature_set = "";  // "": the model's own
  // Only the design spaces without a change of layout, where there are such.
  bool limited_space = false;
  // The set whose results it starts from; "": none. And whether candidates are taken over too, or
  // the model alone.
  std::string related = "";
  bool related_seeds = true;
};

// By name.
using Benches = std::map<std::string, std::unique_ptr<Bench>>;

// A comparison of variants on sets.
struct Experiment {
  std::string name;
  std::string question;  // what it answers, for the report
  std::vector<Variant> variants;
  std::string baseline;           // label that the others are compared with
  std::vector<std::string> sets;  // names
  int seeds = 5;
  int64_t trials = 256;
  int batch = 0;  // see RunOptions
};

// What it came to.
struct Results {
  Experiment experiment;
  std::vector<double> best_latency_ns;                    // per set: the best known
  std::vector<int> builders;                              // per set: of its device
  std::vector<std::vector<std::vector<RunResult>>> runs;  // [variant][set][seed]
  size_t baseline() const;                                // index of its variant
};

// InvalidArgument: the baseline is none of the variants, two of them have one label, or there is no
// variant, set or seed.
absl::Status CheckExperiment(const Experiment& experiment);

// Runs every variant on every set with seeds 1, 2, … in `threads` threads. REQUIRES a bench for
// every set, related ones among them. Errors: as of CheckExperiment, and of RunSearch, with variant
// and set.
absl::StatusOr<Results> RunExperiment(const Experiment& experiment, const Benches& benches,
                                      int threads);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_EXPERIMENT_H_

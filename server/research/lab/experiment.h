#ifndef HONE_SERVER_RESEARCH_LAB_EXPERIMENT_H_
#define HONE_SERVER_RESEARCH_LAB_EXPERIMENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/research/lab/run.h"

namespace hone::lab {

// A configuration to compare.
struct Variant {
  std::string label;
  std::string strategy;
  std::string cost_model = "xgboost";
  std::string feature_set = "";  // "": the model's default
  // Use only the design spaces without layout changes, if there are any.
  bool limited_space = false;
  // The set whose results the variant starts from; "": none. `related_seeds`: transfer candidates
  // and not only the model.
  std::string related = "";
  bool related_seeds = true;
};

// Benches by the names of their sets.
using Benches = std::map<std::string, std::unique_ptr<Bench>>;

// A comparison of variants on sets.
struct Experiment {
  std::string name;
  std::string question;  // the question it answers, for the report
  std::vector<Variant> variants;
  std::string baseline;           // label of the variant to compare with
  std::vector<std::string> sets;  // names
  int seeds = 5;
  int64_t trials = 256;
  int batch = 0;  // see RunOptions
  // How jobs of a live comparison make their design spaces: options of `hone tune`. Recorded sets
  // have the spaces that they were recorded with.
  std::string space;     // "": the rules
  double tolerance = 0;  // of the output
};

struct Results {
  Experiment experiment;
  std::vector<double> best_latency_ns;                    // per set: best known latency
  std::vector<int> builders;                              // per set: builders of its device
  std::vector<std::vector<std::vector<RunResult>>> runs;  // [variant][set][seed]
  size_t baseline() const;                                // index of the baseline variant
};

// InvalidArgument: the baseline is not one of the variants, two variants have the same label, or
// there is no variant, set or seed.
absl::Status CheckExperiment(const Experiment& experiment);

// Runs every variant on every set with seeds 1, 2, … in `threads` threads. REQUIRES: there is a
// bench for every set, including related ones. Errors: those of CheckExperiment and RunSearch, with
// variant and set.
absl::StatusOr<Results> RunExperiment(const Experiment& experiment, const Benches& benches,
                                      int threads);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_EXPERIMENT_H_

#ifndef HONE_SERVER_RESEARCH_LAB_COMPARE_H_
#define HONE_SERVER_RESEARCH_LAB_COMPARE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/research/lab/sample.h"

// Comparing search strategies on this machine with the real service.
namespace hone::lab {

// A way to tune.
struct Variant {
  std::string label;
  std::string strategy, cost_model, feature_set;  // of `hone tune`; "": its default
  std::string store;                              // a store that every run begins with; "": empty
};

struct Comparison {
  std::vector<Variant> variants;  // ratios are to the first one
  std::vector<SampleTask> tasks;
  int seeds = 1;
  int trials = 64;
  std::vector<std::string> options;       // more options of `hone tune`
  std::string program_folder;             // contains `hone`
  std::string work_folder;                // a run that ended there is not repeated
  std::map<std::string, double> best_ns;  // by workload text: the best that is known from a sample
};

// A run of one variant on one task.
struct ComparedRun {
  size_t variant = 0, task = 0;
  int seed = 0;
  std::vector<double> latency_ns;  // of its trials in their order; 0: failed
  std::vector<double> elapsed;     // seconds from the job's creation to each trial
  double seconds = 0;              // the last of them
  double device_seconds = 0;       // of running the candidates
  std::string store;               // what it has learned
};

// Runs `hone tune` for every variant, task and seed, one after the other; variants take turns, so
// that a slow phase of the machine affects all of them. The confirmation is skipped.
// InvalidArgument: there is no variant, task or seed, or two variants have the same label. Aborted:
// `hone` failed.
absl::StatusOr<std::vector<ComparedRun>> Compare(const Comparison& comparison);

// Runs the first variant on the first task with one seed, or reads the result of an earlier call.
// Errors are those of Compare.
absl::StatusOr<ComparedRun> CompareOne(const Comparison& comparison, int seed);

// Returns Markdown: per variant the latency of the first trial and of the best of the first 8, 16,
// 64 and all, over the best known (geometric means with intervals of ClusteredBootstrap); trials to
// 95 % of the best known speed (median, worst quarter), and their ratio to the first variant; and a
// line per task.
std::string ComparisonText(const Comparison& comparison, const std::vector<ComparedRun>& runs);
// Returns CSV with a line per run.
std::string ComparisonCsv(const Comparison& comparison, const std::vector<ComparedRun>& runs);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_COMPARE_H_

#ifndef HONE_SERVER_RESEARCH_LAB_JUDGE_H_
#define HONE_SERVER_RESEARCH_LAB_JUDGE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/target/target.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/cost_model/metric.h"

// Judging how well models order candidates of tasks that they have not seen.
namespace hone::lab {

// A value with its 95 % interval.
struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;
};

// A task of the sample with what models read.
struct JudgedTask {
  std::string name;      // the workload's name and the begin of its digest
  std::string workload;  // text form
  std::string family;    // see SampleTask
  bool held_out = false;
  std::vector<double> latency_ns;                   // per candidate; 0: failed
  double best_ns = 0;                               // best known
  std::vector<cost_model::FeatureMatrix> features;  // per feature set of Sample
  std::vector<double> modelled_cycles;  // per candidate, if they were asked for; 0: refused
  int left_out = 0;                     // candidates that do not replay any more
};

// The measurements of one dataset.
struct Sample {
  std::string target, machine;
  bool modelled = false;  // nothing was timed: the latencies are modelled costs
  std::vector<std::string> feature_sets;
  std::vector<JudgedTask> tasks;
};

struct ReadOptions {
  std::string only;  // only tasks whose name contains it
  // What to assume that a worker measured, instead of the dataset's; "": the constants of the kind
  // of CPU.
  target::Calibration calibration;
  int results = 0;  // at most so many of each task, evenly; 0: all
  // The folder of hone-builder, which models what candidates cost (modelled.h); "": not asked for.
  std::string modelled_by;
};

// Reads a dataset of one target and extracts features, in `threads` threads. Tasks of which nothing
// ran are left out. InvalidArgument: the dataset is malformed or has several targets. Others are
// those of ModelCycles.
absl::StatusOr<Sample> ReadSample(const std::string& path, std::vector<std::string> feature_sets,
                                  int threads, const ReadOptions& options = {});

// Returns the lowest latency of every workload of a dataset, by its text. InvalidArgument: the
// dataset is malformed, or its costs are modelled, so that none is a latency.
absl::StatusOr<std::map<std::string, double>> BestOfSample(const std::string& path);

// How well scores order the candidates of one task. A latency of a failed candidate counts as the
// slowest of the task.
struct TaskScore {
  std::string name, family;
  double first = 1;         // latency of the best-scored candidate / best known latency
  double best_of_8 = 1;     // the same for the fastest of the eight best-scored candidates
  double pairs = 0;         // cost_model::PairwiseAccuracy of pairs that differ by more than 3 %
  double trials_to_95 = 1;  // candidates to measure in the order of their scores until one has 95 %
                            // of the best known speed
  cost_model::RankedTask ranked;
};
TaskScore ScoreTask(const JudgedTask& task, std::vector<double> scores);

// The name of the modelled cost among the models that are judged.
inline constexpr char kModelledCost[] = "modelled";

// The scores of one model, on tasks that it was not trained on.
struct JudgedModel {
  std::string name;
  std::vector<TaskScore> development, held_out;
  double predict_us = 0;  // processor time of a candidate, without its features; 0: not known
};

// What a model is trained on.
struct Training {
  int tasks = 0;    // the most tasks, as in a young store; 0: all
  int results = 0;  // the most results of each task; 0: all
  // The development tasks of another machine, for all tasks of this one; null: of the same machine.
  const Sample* other = nullptr;
  // With `other`: the model is also trained on this sample's tasks, as target 0, and on the
  // development tasks of the other, without limits, as target 1.
  bool with_own = false;
  bool held_out_only = false;  // the development tasks are not judged, which needs five trainings
};

// Judges `names`: "presets" is the draft without training; kModelledCost is what LLVM's model of
// the CPU says, which the sample must have; the others are registered models, after "presets+" as
// a residual over the draft without training (cost_model::Labels::offset). For development
// tasks, the model is trained on four fifths of the development tasks and judged on the others, in
// turn; for held-out tasks, it is trained on all development tasks. Errors are those of the models.
absl::StatusOr<std::vector<JudgedModel>> Judge(const Sample& sample,
                                               const std::vector<std::string>& names,
                                               const Training& training = {});

// Trains a model on tasks of a sample that has its features, and on all development tasks of `also`
// as another target. Errors are those of the model.
absl::StatusOr<std::unique_ptr<cost_model::CostModel>> TrainModel(
    const std::string& name, const Sample& sample, const std::vector<const JudgedTask*>& tasks,
    int most_results = 0, const Sample* also = nullptr, uint64_t seed = 1);

// Returns the feature sets that the models read.
absl::StatusOr<std::vector<std::string>> FeatureSetsOf(const std::vector<std::string>& names);

// Returns the statistic over tasks with its 95 % interval from a bootstrap that first resamples
// families and then the tasks of each family, because results of similar tasks are not independent.
Interval ClusteredBootstrap(
    const std::vector<TaskScore>& tasks,
    const std::function<double(const std::vector<const TaskScore*>&)>& statistic);

// Returns Markdown: one table for development and one for held-out tasks. `per_task`: and one with
// a line per task and the first choices of all models.
std::string JudgementText(const Sample& sample, const std::vector<JudgedModel>& models,
                          bool per_task);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_JUDGE_H_

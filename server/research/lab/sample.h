#ifndef HONE_SERVER_RESEARCH_LAB_SAMPLE_H_
#define HONE_SERVER_RESEARCH_LAB_SAMPLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/dataset.h"
#include "common/target/target.h"

// The sample: measurements of random candidates of many tasks, one dataset
// (common/record/dataset.h) per target, on which cost models are judged.
namespace hone::lab {

// A task of the sample.
struct SampleTask {
  std::string name;      // the line of the list
  std::string workload;  // text form
  std::string
      family;  // the name of its workload, or of its network; see ClusteredBootstrap in judge.h
  std::string network;  // "" for a single operator
  bool held_out = false;
};

// Reads a list of tasks: in each line an operator with its shape, or NETWORK/FILE.hone, relative to
// the list's folder; # begins a comment. NotFound: a file cannot be read. InvalidArgument: a line
// is malformed or a task occurs twice; the message has the line.
absl::StatusOr<std::vector<SampleTask>> ReadSampleTasks(const std::string& list);

// Returns whether a workload is held out. A hash of its structure decides, and holds out half of
// all workloads. Held-out tasks are only used to judge; no constant, model or rule may be chosen by
// them. InvalidArgument: the text is malformed.
absl::StatusOr<bool> IsHeldOut(const std::string& workload);

// Returns why a task has no design space on a target; "": it has one.
std::string WhyNoSpace(const SampleTask& task, const target::Target& target);

struct CollectOptions {
  std::vector<SampleTask> tasks;
  std::string program_folder;  // contains `hone` and `hone-builder`
  std::string work_folder;     // has the stores; continues an interrupted collection
  // "native", a GPU of this machine such as "opencl", or a CPU's name or text, for which costs are
  // modelled instead (modelled.h).
  std::string target = "native";
  int uniform = 300;  // uniform draws of each task
  int drafted = 64;   // the first candidates of the draft
  int searched =
      64;  // trials of the default search after them, so that the best known latency is low
  // The first candidates of a draft that was learned from the results of other development tasks,
  // after all tasks were measured: what a model prefers and what it overestimates.
  int learned = 0;
  std::string only;  // only tasks whose name contains this
  std::string out;   // the dataset
};

// InvalidArgument: a dataset has modelled costs where measurements are wanted, or the reverse.
// `path`: for the message.
absl::Status CheckKind(const record::Dataset& dataset, const std::string& path, bool modelled);

// Copies all records to another dataset. Their targets lose the calibration of their day.
absl::Status CopyRecords(record::Dataset& from, record::DatasetWriter& to);

// Measures candidates of every task with the real service: `hone tune` with the strategies
// `random`, `draft` and `portfolio`. Then writes all results in the store to the dataset. If `out`
// exists, its records are kept, and its tasks are not measured again; except that with `learned`
// each task without such results gets them. Tasks that have no design space on a GPU are skipped,
// with a line that says so. Errors: InvalidArgument, FailedPrecondition: this machine has no such
// GPU or it cannot be used, the target is unknown, or `out` has the other kind of results. Aborted:
// `hone` failed on some tasks, which are not in the dataset; call it again to measure them. With
// modelled costs, the code is that of the failure.
absl::Status Collect(const CollectOptions& options);

// Writes a store that knows nothing but what a server would have learned from the development tasks
// of a dataset, to compare searches with it. InvalidArgument: the store exists, the dataset is
// malformed, or its costs are modelled: no server may take them for measurements.
absl::Status Learn(const std::string& dataset, const std::string& store);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_SAMPLE_H_

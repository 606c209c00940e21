// hone-lab: flags and wiring.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/command_line.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/program.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "server/research/lab/curves.h"
#include "server/research/lab/experiment.h"
#include "server/research/lab/judge.h"
#include "server/research/lab/live.h"
#include "server/research/lab/model_comparison.h"
#include "server/research/lab/presets.h"
#include "server/research/lab/recorded_set.h"
#include "server/research/lab/recorder.h"
#include "server/research/lab/sample.h"
#include "server/research/lab/scheduler_comparison.h"
#include "server/research/lab/summary.h"
#include "server/research/register.h"
#include "server/tuner/space/generate.h"

namespace hone::lab {
namespace {

constexpr int kFailure = 1;
constexpr char kFolder[] = "tests/bench/recorded";

struct Flags {
  std::string recorded_dir;
  std::string preset;
  bool recorded = false;
  bool live = false;
  std::vector<std::string> sets, strategies, models, features, schedulers;
  std::vector<std::string> ops;  // live: replace the sets
  std::string target, space;     // live
  std::string baseline;
  int seeds = 0;
  int64_t trials = 0;
  int batch = 0;
  int threads = 0;
  int64_t candidates = 4000;  // number of candidates for evaluating models
  std::string out;
  RecordOptions record;
  CollectOptions collect;
  std::vector<std::string> datasets;  // to judge on
  bool per_task = false;
  std::vector<std::string> words;  // of an operator
};

// Returns the folder in the source tree, independent of the working directory.
std::string RecordedFolder(const Flags& flags) {
  if (!flags.recorded_dir.empty()) return flags.recorded_dir;
  if (RecordedSetNames(kFolder).ok()) return kFolder;
  return absl::StrCat(ProgramDir(), "/../../../", kFolder);
}

// Returns all combinations of the given strategies, models and feature sets.
std::vector<Variant> NamedVariants(const Flags& flags) {
  const auto or_one = [](const std::vector<std::string>& names, const char* fallback) {
    return names.empty() ? std::vector<std::string>{fallback} : names;
  };
  std::vector<Variant> variants;
  for (const std::string& strategy : or_one(flags.strategies, "evolutionary")) {
    for (const std::string& model : or_one(flags.models, "xgboost")) {
      for (const std::string& features : or_one(flags.features, "")) {
        std::string label = strategy;
        if (flags.models.size() > 1) absl::StrAppend(&label, "+", model);
        if (flags.features.size() > 1) absl::StrAppend(&label, "+", features);
        variants.push_back({label, strategy, model, features});
      }
    }
  }
  return variants;
}

absl::StatusOr<Experiment> ExperimentOf(const Flags& flags, const std::string& folder) {
  Experiment experiment;
  if (!flags.preset.empty()) {
    HONE_ASSIGN_OR_RETURN(experiment, FindPreset(flags.preset));
  } else {
    experiment.name = "own comparison";
    experiment.variants = NamedVariants(flags);
    experiment.baseline = experiment.variants.front().label;
  }
  if (!flags.baseline.empty()) experiment.baseline = flags.baseline;
  if (!flags.ops.empty() && !flags.live) {
    return absl::InvalidArgumentError("--op needs --live; recorded sets are named with --set");
  }
  if (!flags.space.empty()) experiment.space = flags.space;
  if ((!experiment.space.empty() || !flags.target.empty()) && !flags.live) {
    return absl::InvalidArgumentError(
        absl::StrCat(experiment.name,
                     " needs --live: recorded sets have the design spaces and the "
                     "target that they were recorded with"));
  }
  if (!flags.sets.empty() || !flags.ops.empty()) experiment.sets = flags.sets;
  experiment.sets.insert(experiment.sets.end(), flags.ops.begin(), flags.ops.end());
  if (experiment.sets.empty()) {
    HONE_ASSIGN_OR_RETURN(experiment.sets, RecordedSetNames(folder));
  }
  if (flags.seeds > 0) experiment.seeds = flags.seeds;
  if (flags.trials > 0) experiment.trials = flags.trials;
  if (flags.batch > 0) experiment.batch = flags.batch;
  return experiment;
}

absl::StatusOr<Benches> OpenBenches(const std::vector<std::string>& names,
                                    const std::string& folder) {
  Benches benches;
  for (const std::string& name : names) {
    if (benches.contains(name)) continue;
    HONE_ASSIGN_OR_RETURN(RecordedSet set, LoadRecordedSet(folder, name));
    HONE_ASSIGN_OR_RETURN(benches[name], Bench::Open(std::move(set)));
  }
  return benches;
}

int ThreadsOf(const Flags& flags) {
  if (flags.threads > 0) return flags.threads;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

absl::StatusOr<Results> RunRecorded(const Flags& flags, const Experiment& experiment,
                                    const std::string& folder) {
  std::vector<std::string> names = experiment.sets;
  for (const Variant& variant : experiment.variants) {
    if (!variant.related.empty()) names.push_back(variant.related);
  }
  HONE_ASSIGN_OR_RETURN(const Benches benches, OpenBenches(names, folder));
  return RunExperiment(experiment, benches, ThreadsOf(flags));
}

absl::StatusOr<Results> RunOnDevice(const Flags& flags, const Experiment& experiment,
                                    const std::string& folder) {
  if (flags.out.empty()) return absl::InvalidArgumentError("--live needs --out");
  LiveOptions options{.program_folder = ProgramDir(),
                      .work_folder = flags.out + "/live-runs",
                      .target = flags.target};
  for (const std::string& op : flags.ops) {
    const std::vector<std::string> words = absl::StrSplit(op, ' ', absl::SkipEmpty());
    if (words.empty()) return absl::InvalidArgumentError("--op needs an operator and its shape");
    HONE_ASSIGN_OR_RETURN(const ir::Workload workload,
                          op::BuildWorkload(words[0], absl::MakeConstSpan(words).subspan(1)));
    options.workloads[op] = workload.ToText();
  }
  for (const std::string& name : experiment.sets) {
    if (options.workloads.contains(name)) continue;
    HONE_ASSIGN_OR_RETURN(const RecordedSet set, LoadRecordedSet(folder, name));
    HONE_ASSIGN_OR_RETURN(const schedule::TraceFile file, schedule::ParseTraceFile(set.spaces[0]));
    options.workloads[name] = file.workload.ToText();
  }
  return RunLive(experiment, options);
}

absl::Status Compare(const Flags& flags) {
  const std::string folder = RecordedFolder(flags);
  HONE_ASSIGN_OR_RETURN(const Experiment experiment, ExperimentOf(flags, folder));
  HONE_ASSIGN_OR_RETURN(const Results results, flags.live ? RunOnDevice(flags, experiment, folder)
                                                          : RunRecorded(flags, experiment, folder));
  const std::string summary = SummaryText(results);
  const std::string time = TimeText(results);
  std::printf("%s\n%s", summary.c_str(), time.c_str());
  if (flags.out.empty()) return absl::OkStatus();
  HONE_RETURN_IF_ERROR(MakeDirectories(flags.out));
  const std::pair<const char*, std::string> files[] = {
      {"summary.md", summary},
      {"runs.csv", RunsCsv(results)},
      {"curves.csv", CurvesCsv(results)},
      {"comparison.csv", ComparisonCsv(results)},
      {"time.md", time},
      {"time.csv", TimeCsv(results)},
      {"trials.svg", SvgPlot(TrialsPlot(results))},
      {"seconds.svg", SvgPlot(SecondsPlot(results))}};
  for (const auto& [file, text] : files) {
    HONE_RETURN_IF_ERROR(
        WriteFileAtomically(absl::StrCat(flags.out, "/", flags.live ? "live-" : "", file), text));
  }
  return absl::OkStatus();
}

// Returns the given names, or those of all recorded sets.
absl::StatusOr<std::vector<std::string>> SetNames(const Flags& flags, const std::string& folder) {
  if (!flags.sets.empty()) return flags.sets;
  return RecordedSetNames(folder);
}

absl::Status CompareTaskSchedulers(const Flags& flags) {
  const std::string folder = RecordedFolder(flags);
  SchedulerComparison comparison{.schedulers = flags.schedulers};
  if (comparison.schedulers.empty())
    comparison.schedulers = {"round-robin", "gradient", "expected-gain"};
  HONE_ASSIGN_OR_RETURN(comparison.sets, SetNames(flags, folder));
  if (flags.seeds > 0) comparison.seeds = flags.seeds;
  comparison.trials =
      flags.trials > 0 ? flags.trials : 32 * static_cast<int64_t>(comparison.sets.size());
  if (flags.batch > 0) comparison.batch = flags.batch;
  HONE_ASSIGN_OR_RETURN(const Benches benches, OpenBenches(comparison.sets, folder));
  HONE_ASSIGN_OR_RETURN(const SchedulerResults results,
                        CompareSchedulers(comparison, benches, ThreadsOf(flags)));
  const std::string text = SchedulerText(results);
  std::fputs(text.c_str(), stdout);
  if (flags.out.empty()) return absl::OkStatus();
  HONE_RETURN_IF_ERROR(MakeDirectories(flags.out));
  HONE_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(flags.out, "/summary.md"), text));
  return WriteFileAtomically(absl::StrCat(flags.out, "/curves.csv"), SchedulerCurvesCsv(results));
}

absl::Status ListSets(const Flags& flags) {
  const std::string folder = RecordedFolder(flags);
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> names, RecordedSetNames(folder));
  std::printf("%-24s %7s %9s %9s %10s %10s %8s %7s\n", "set", "spaces", "vectors", "programs",
              "best µs", "median", "slowest", "failed");
  for (const std::string& name : names) {
    HONE_ASSIGN_OR_RETURN(const RecordedSet set, LoadRecordedSet(folder, name));
    std::vector<double> latencies;
    for (const Measurement& measurement : set.measurements) {
      if (measurement.latency_ns > 0) latencies.push_back(measurement.latency_ns);
    }
    absl::c_sort(latencies);
    const double best = latencies.front();
    std::printf("%-24s %7zu %9zu %9zu %10.1f %9.2fx %7.1fx %7zu\n", name.c_str(), set.spaces.size(),
                set.candidates.size(), set.measurements.size(), best / 1e3,
                latencies[latencies.size() / 2] / best, latencies.back() / best,
                set.measurements.size() - latencies.size());
  }
  return absl::OkStatus();
}

absl::Status JudgeModels(const Flags& flags) {
  const std::string folder = RecordedFolder(flags);
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> names, SetNames(flags, folder));
  std::vector<RecordedSet> sets;
  for (const std::string& name : names) {
    HONE_ASSIGN_OR_RETURN(sets.emplace_back(), LoadRecordedSet(folder, name));
  }
  job::EvaluationQuery query{.records = {.max_records = flags.candidates},
                             .seed = static_cast<uint64_t>(std::max(flags.seeds, 1))};
  for (const std::string& model : flags.models) {
    if (flags.features.empty()) query.models.push_back({model, ""});
    for (const std::string& features : flags.features) query.models.push_back({model, features});
  }
  HONE_ASSIGN_OR_RETURN(const job::ModelEvaluation evaluation, EvaluateOnSets(sets, query));
  std::fputs(EvaluationText(evaluation).c_str(), stdout);
  return absl::OkStatus();
}

// Writes the spaces as files, to be restricted by hand and then recorded.
absl::Status WriteSpaces(const Flags& flags) {
  const absl::Span<const std::string> words = flags.words;
  HONE_ASSIGN_OR_RETURN(ir::Workload workload, op::BuildWorkload(words[0], words.subspan(1)));
  HONE_ASSIGN_OR_RETURN(
      const auto spaces,
      space::GenerateDesignSpaces(std::make_shared<const ir::Workload>(std::move(workload)),
                                  target::DetectHost()));
  HONE_RETURN_IF_ERROR(MakeDirectories(flags.out));
  for (const auto& space : spaces) {
    const std::string path = absl::StrCat(flags.out, "/", space->name(), ".trace");
    HONE_RETURN_IF_ERROR(WriteFileAtomically(path, space->text()));
    std::printf("%s\n", path.c_str());
  }
  return absl::OkStatus();
}

absl::Status Record(Flags& flags) {
  flags.record.program_folder = ProgramDir();
  absl::StatusOr<RecordedSet> recorded = RecordSet(flags.record);
  if (flags.record.only_count && absl::IsCancelled(recorded.status())) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const RecordedSet set, std::move(recorded));
  return WriteFileAtomically(absl::StrCat(RecordedFolder(flags), "/", set.name, kSetSuffix),
                             EncodeRecordedSet(set));
}

absl::Status ListTasks(const Flags& flags) {
  HONE_ASSIGN_OR_RETURN(const std::vector<SampleTask> tasks, ReadSampleTasks(flags.collect.list));
  for (const SampleTask& task : tasks)
    std::printf("%-11s  %s\n", task.held_out ? "held out" : "development", task.name.c_str());
  return absl::OkStatus();
}

absl::Status JudgeOnSamples(const Flags& flags) {
  const std::vector<std::string> names =
      flags.models.empty()
          ? std::vector<std::string>{"draft", "analytic", "xgboost", "mlp", "random"}
          : flags.models;
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> sets, FeatureSetsOf(names));
  for (const std::string& path : flags.datasets) {
    HONE_ASSIGN_OR_RETURN(const Sample sample, ReadSample(path, sets, ThreadsOf(flags)));
    HONE_ASSIGN_OR_RETURN(const std::vector<JudgedModel> models, Judge(sample, names));
    std::printf("%s\n", JudgementText(sample, models, flags.per_task).c_str());
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  research::Register();
  Flags flags;
  Command app{
      "Hone's laboratory: compares strategies, cost models and features on recorded design spaces, "
      "which are measured completely, so that no device is needed."};
  app.AddVersion("hone-lab " HONE_VERSION);
  app.Footer(absl::StrCat(
      "Presets: ", absl::StrJoin(PresetNames(), ", "),
      "\n\nExamples:\n"
      "  hone-lab --preset rocke --recorded --seeds 5 --out out/\n"
      "  hone-lab --strategy portfolio --strategy evolutionary --set matmul_512 --trials 128\n"
      "  hone-lab --strategy annealing --cost-model xgboost-rank --feature-set knob --feature-set "
      "curve-fix\n"
      "  hone-lab --preset portfolio --live --set conv2d_14x14x256 --seeds 2 --out out/\n"
      "  hone-lab --preset portfolio --live --op 'matmul m=1024 n=1024 k=1024' --out out/\n"
      "  hone-lab --preset zheng-gpu --live --target cuda --out out/\n"
      "  hone-lab sets\n"
      "  hone-lab models --cost-model xgboost --cost-model gp\n"
      "  hone-lab schedulers --seeds 5\n"
      "  hone-lab record matmul_512 --space a.trace --space b.trace --work /tmp/rec\n\n"
      "Exit codes: 0 ok, 1 failed, 2 wrong usage or input."));
  app.Add("--recorded-dir", flags.recorded_dir, "Folder of the recorded sets");
  app.Add("--preset", flags.preset, "Name of a predefined comparison (see Presets)");
  app.AddFlag("--recorded", flags.recorded, "Compare on recorded sets (the default)");
  app.AddFlag(
      "--live", flags.live,
      "Compare on this machine: hone tunes the workloads of the sets in all their design spaces",
      {Excludes("--recorded")});
  app.Add("--set", flags.sets, "Recorded set; may be repeated (default: all)");
  app.Add("--op", flags.ops,
          "With --live: an operator with its shape, in quotes, to tune instead of a set; may be "
          "repeated");
  app.Add("--target", flags.target, "With --live: the target of hone tune, such as cuda");
  app.Add("--space", flags.space, "With --live: the design spaces of hone tune, such as templates");
  app.Add("--strategy", flags.strategies, "Search strategy; may be repeated");
  app.Add("--cost-model", flags.models, "Cost model; may be repeated (default: xgboost)");
  app.Add("--feature-set", flags.features,
          "Feature set that the model reads; may be repeated (default: its own)");
  app.Add("--baseline", flags.baseline, "Variant that ratios are relative to (default: the first)");
  app.Add("--seeds", flags.seeds, "Number of runs of each variant on each set (default 5)",
          {Range(1, 1000)});
  app.Add("--trials", flags.trials, "Maximum number of trials of a run (default 256)",
          {Range(1, 1000000)});
  app.Add("--batch", flags.batch,
          "Candidates per proposal (default: an eighth of the trials, 4 to 32)", {Range(1, 4096)});
  app.Add("--threads", flags.threads, "Number of runs in parallel (default: one per core)",
          {Range(1, 1024)});
  app.Add("--out", flags.out, "Folder for the tables, CSV files and plots");
  Command& sets = app.AddCommand("sets", "List the recorded sets");
  Command& record = app.AddCommand("record", "Measure design spaces completely on this machine");
  record.Add("name", flags.record.name, "Name of the set", {Required()});
  record.Add("--space", flags.record.space_files, "Trace file with open samplings; may be repeated",
             {Required(), ExistingFile()});
  record.Add("--work", flags.record.work_folder,
             "Folder for the measurements; a repeated command continues from them", {Required()});
  record.Add("--rounds", flags.record.rounds, "How many times to measure the fastest programs",
             {Range(1, 100)});
  record.Add("--top", flags.record.top_share,
             "Share of the programs to measure again, the fastest ones", {Range(0.0, 1.0)});
  record.AddFlag("--count", flags.record.only_count, "Only print the number of candidates");
  record.Add("--limit", flags.record.limit, "Maximum number of candidates in all spaces together");
  Command& collect =
      app.AddCommand("collect", "Measure candidates of the sample's tasks on this machine");
  Command& tasks = app.AddCommand("tasks", "List the sample's tasks and which are held out");
  for (Command* command : {&collect, &tasks})
    command->Add("--tasks", flags.collect.list, "List of tasks", {Required(), ExistingFile()});
  collect.Add("--work", flags.collect.work_folder,
              "Folder of the store; a repeated command continues from it", {Required()});
  collect.Add("--out", flags.collect.out, "The dataset; its tasks are not measured again",
              {Required()});
  collect.Add("--target", flags.collect.target, "Target of hone tune (default native)");
  collect.Add("--only", flags.collect.only, "Only tasks whose line contains this text");
  collect.Add("--uniform", flags.collect.uniform, "Uniform draws of each task (default 300)",
              {Range(0, 100000)});
  collect.Add("--drafted", flags.collect.drafted, "First candidates of the draft (default 64)",
              {Range(0, 100000)});
  collect.Add("--searched", flags.collect.searched,
              "Trials of the default search after them (default 64)", {Range(0, 100000)});
  Command& judge =
      app.AddCommand("judge", "Judge cost models on tasks that they were not trained on");
  judge.Add("datasets", flags.datasets, "Datasets of the sample", {Required(), ExistingFile()});
  judge.Add(
      "--cost-model", flags.models,
      "Cost model, or draft; may be repeated (default: draft, analytic, xgboost, mlp, random)");
  judge.AddFlag("--per-task", flags.per_task, "Also print a line for each task");
  judge.Add("--threads", flags.threads, "Threads that extract features (default: one per core)",
            {Range(1, 1024)});
  Command& models = app.AddCommand(
      "models", "Train and evaluate cost models on recorded sets, as hone models evaluate does");
  models.Add("--cost-model", flags.models, "Cost model; may be repeated", {Required()});
  models.Add("--feature-set", flags.features,
             "Feature set that the models read instead of their own; may be repeated");
  models.Add("--set", flags.sets, "Recorded set; may be repeated (default: all)");
  models.Add("--candidates", flags.candidates,
             "Maximum number of candidates, spread evenly over the sets", {Range(64, 1000000)});
  models.Add("--seeds", flags.seeds, "Seed for choosing the held-out data (default 1)");
  Command& schedulers = app.AddCommand(
      "schedulers", "Compare the schedulers of a network's tasks on networks of recorded sets");
  schedulers.Add(
      "--scheduler", flags.schedulers,
      "Task scheduler; may be repeated; the first is the baseline (default: round-robin, "
      "gradient, expected-gain)");
  schedulers.Add("--set", flags.sets,
                 "Recorded set to use as a task; may be repeated (default: all)");
  schedulers.Add("--seeds", flags.seeds, "Number of random networks (default 5)", {Range(1, 1000)});
  schedulers.Add("--trials", flags.trials, "Number of trials per network (default: 32 per set)",
                 {Range(1, 1000000)});
  schedulers.Add("--batch", flags.batch, "Trials that a task gets at a time (default 8)",
                 {Range(1, 4096)});
  schedulers.Add("--threads", flags.threads, "Number of runs in parallel (default: one per core)",
                 {Range(1, 1024)});
  schedulers.Add("--out", flags.out, "Folder for summary.md and curves.csv");
  Command& spaces = app.AddCommand("spaces",
                                   "Write the design spaces that the rules generate for an "
                                   "operator, so that they can be restricted");
  spaces.Add("words", flags.words, "OP key=value...", {Required()});
  spaces.Add("--out", flags.out, "Folder for the trace files", {Required()});
  app.OnRun([&] { return Compare(flags); });
  sets.OnRun([&] { return ListSets(flags); });
  record.OnRun([&] { return Record(flags); });
  models.OnRun([&] { return JudgeModels(flags); });
  schedulers.OnRun([&] { return CompareTaskSchedulers(flags); });
  collect.OnRun([&] {
    flags.collect.program_folder = ProgramDir();
    return Collect(flags.collect);
  });
  tasks.OnRun([&] { return ListTasks(flags); });
  judge.OnRun([&] { return JudgeOnSamples(flags); });
  spaces.OnRun([&] { return WriteSpaces(flags); });
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  // Standard output is for results.
  absl::Status status = SetUpLog("hone-lab", "text", "warning");
  if (status.ok()) status = app.Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "hone-lab: %s\n", std::string(status.message()).c_str());
  return absl::IsNotFound(status) || absl::IsInvalidArgument(status) ? kUsageExitCode : kFailure;
}

}  // namespace
}  // namespace hone::lab

int main(int argc, char** argv) { return hone::lab::Main(argc, argv); }

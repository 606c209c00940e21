// hone-lab: flags and wiring.

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/command_line.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/program.h"
#include "common/base/status_macros.h"
#include "server/research/lab/claims.h"
#include "server/research/lab/compare.h"
#include "server/research/lab/judge.h"
#include "server/research/lab/sample.h"
#include "server/research/lab/slice.h"
#include "server/research/register.h"

namespace hone::lab {
namespace {

constexpr int kFailure = 1;

struct Flags {
  std::string list, only;  // of tasks
  CollectOptions collect;
  std::vector<std::string> datasets, models;
  bool per_task = false, held_out = false, development = false;
  int threads = 0;
  std::string learn_from;
  ReadOptions read;
  Training training;
  std::vector<std::string> variants;
  Comparison comparison;
  std::string target, space, tolerance, sample, out, calibration;
  std::vector<std::string> presets;
  bool list_presets = false;
  ClaimOptions claims;
  std::vector<std::string> words;  // of an operator
  SliceOptions slice;
};

// Returns the tasks of the list that the flags select.
absl::StatusOr<std::vector<SampleTask>> Tasks(const Flags& flags) {
  HONE_ASSIGN_OR_RETURN(std::vector<SampleTask> tasks, ReadSampleTasks(flags.list));
  std::erase_if(tasks, [&](const SampleTask& task) {
    return !absl::StrContains(task.name, flags.only) || (flags.held_out && !task.held_out) ||
           (flags.development && task.held_out);
  });
  return tasks;
}

absl::Status ListTasks(const Flags& flags) {
  HONE_ASSIGN_OR_RETURN(const std::vector<SampleTask> tasks, Tasks(flags));
  for (const SampleTask& task : tasks)
    std::printf("%-11s  %s\n", task.held_out ? "held out" : "development", task.name.c_str());
  return absl::OkStatus();
}

absl::Status CollectSample(Flags& flags) {
  flags.collect.program_folder = ProgramDir();
  HONE_ASSIGN_OR_RETURN(flags.collect.tasks, Tasks(flags));
  return Collect(flags.collect);
}

absl::Status JudgeModels(const Flags& flags) {
  std::vector<std::string> names = flags.models;
  if (names.empty()) names = {"presets", "draft", "residual", "xgboost", "mlp", "random"};
  const int threads = flags.threads > 0
                          ? flags.threads
                          : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> sets, FeatureSetsOf(names));
  ReadOptions read = flags.read;
  read.only = flags.only;
  HONE_ASSIGN_OR_RETURN(read.calibration, target::Calibration::FromText(flags.calibration));
  if (absl::c_linear_search(names, kModelledCost)) read.modelled_by = ProgramDir();
  Training training = flags.training;
  Sample other;
  if (!flags.learn_from.empty()) {
    HONE_ASSIGN_OR_RETURN(other, ReadSample(flags.learn_from, sets, threads));
    training.other = &other;
  }
  for (const std::string& path : flags.datasets) {
    HONE_ASSIGN_OR_RETURN(const Sample sample, ReadSample(path, sets, threads, read));
    HONE_ASSIGN_OR_RETURN(const std::vector<JudgedModel> models, Judge(sample, names, training));
    std::printf("%s\n", JudgementText(sample, models, flags.per_task).c_str());
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

// Parses label=strategy[,cost model[,feature set[,store]]].
absl::StatusOr<Variant> ParseVariant(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  const std::vector<std::string> words =
      absl::StrSplit(parts.size() == 2 ? parts[1] : parts[0], ',');
  if (parts[0].empty() || words.size() > 4) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--variant '", text, "' is not LABEL=STRATEGY[,COST-MODEL[,FEATURE-SET[,STORE]]]"));
  }
  const auto word = [&](size_t i) { return i < words.size() ? words[i] : std::string(); };
  return Variant{parts[0], word(0), word(1), word(2), word(3)};
}

absl::Status CompareVariants(Flags& flags) {
  Comparison& comparison = flags.comparison;
  for (const std::string& text : flags.variants) {
    HONE_ASSIGN_OR_RETURN(comparison.variants.emplace_back(), ParseVariant(text));
  }
  HONE_ASSIGN_OR_RETURN(comparison.tasks, Tasks(flags));
  for (const auto& [option, value] : {std::pair{"--target", flags.target},
                                      {"--space", flags.space},
                                      {"--tolerance", flags.tolerance}}) {
    if (!value.empty()) comparison.options.insert(comparison.options.end(), {option, value});
  }
  if (!flags.sample.empty()) {
    HONE_ASSIGN_OR_RETURN(comparison.best_ns, BestOfSample(flags.sample));
  }
  comparison.program_folder = ProgramDir();
  comparison.work_folder = flags.out + "/runs";
  HONE_ASSIGN_OR_RETURN(const std::vector<ComparedRun> runs, Compare(comparison));
  const std::string text = ComparisonText(comparison, runs);
  std::fputs(text.c_str(), stdout);
  HONE_RETURN_IF_ERROR(WriteFileAtomically(flags.out + "/summary.md", text));
  return WriteFileAtomically(flags.out + "/runs.csv", ComparisonCsv(comparison, runs));
}

absl::Status WriteVerdicts(const std::string& folder, const std::string& out) {
  HONE_ASSIGN_OR_RETURN(const std::vector<ClaimRun> runs, ReadClaimRuns(folder));
  const auto small = absl::c_count_if(runs, [](const ClaimRun& run) { return run.small; });
  if (small > 0) {
    std::fprintf(stderr, "the runs of --small say nothing about a claim; %d of %d are left out\n",
                 static_cast<int>(small), static_cast<int>(runs.size()));
  }
  std::string page;
  if (!out.empty() && std::filesystem::exists(out)) {
    HONE_ASSIGN_OR_RETURN(page, ReadFile(out));
  }
  const std::string text = VerdictText(runs, page);
  std::fputs(text.c_str(), stdout);
  return out.empty() ? absl::OkStatus() : WriteFileAtomically(out, text);
}

absl::Status RunClaims(Flags& flags) {
  if (flags.list_presets) {
    for (const Claim& claim : Claims()) {
      std::printf("%-15s  %4d trials  %s: %s%s\n", claim.name.c_str(), claim.trials,
                  claim.source.c_str(), ClaimDeviceName(claim.device),
                  claim.on_machine ? ", machine" : "");
    }
    return absl::OkStatus();
  }
  if (flags.claims.out.empty()) return absl::InvalidArgumentError("claims needs --out");
  flags.claims.program_folder = ProgramDir();
  std::vector<const Claim*> chosen;
  for (const std::string& preset : flags.presets) {
    const auto found =
        absl::c_find_if(Claims(), [&](const Claim& claim) { return claim.name == preset; });
    if (found == Claims().end()) {
      return absl::NotFoundError(
          absl::StrCat("there is no preset '", preset, "'; hone-lab claims --list prints them"));
    }
    chosen.push_back(&*found);
  }
  for (const Claim& claim : Claims()) {
    if (flags.presets.empty() && (claim.on_machine || !flags.claims.on_machine))
      chosen.push_back(&claim);
  }
  for (const Claim* claim : chosen) {
    std::fprintf(stderr, "%s\n", claim->name.c_str());
    HONE_RETURN_IF_ERROR(RunClaim(*claim, flags.claims));
  }
  return WriteVerdicts(flags.claims.out, /*out=*/"");
}

absl::Status RunSlice(Flags& flags) {
  flags.slice.task = absl::StrJoin(flags.words, " ");
  flags.slice.program_folder = ProgramDir();
  HONE_ASSIGN_OR_RETURN(const Slice slice, MeasureSlice(flags.slice));
  std::fputs(SliceText(slice).c_str(), stdout);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  research::Register();
  Flags flags;
  Command app{
      "Hone's laboratory: measures a sample of many tasks on a machine, judges cost models on "
      "tasks "
      "that they have not seen, and compares ways to tune."};
  app.AddVersion("hone-lab " HONE_VERSION);
  app.Footer(
      "Examples:\n"
      "  hone-lab tasks --held-out\n"
      "  hone-lab collect --work /tmp/sample --out sample.h5\n"
      "  hone-lab collect --work /tmp/a76 --out a76.h5 --target arm/cortex-a76 --uniform 100 "
      "--drafted 32\n"
      "  hone-lab judge tests/bench/sample/*.h5\n"
      "  hone-lab judge sample.h5 --cost-model residual --cost-model xgboost --per-task\n"
      "  hone-lab compare --held-out --variant portfolio --variant evolutionary --trials 64 --out "
      "out\n"
      "  hone-lab learn sample.h5 --out learned.db\n"
      "  hone-lab compare --variant empty=portfolio --variant learned=portfolio,,,learned.db --out "
      "out\n"
      "  hone-lab claims --small --sample sample.h5 --out claims\n"
      "  hone-lab verdicts claims --out seeds.md\n"
      "  hone-lab slice matmul m=512 n=512 k=512 --out slice\n"
      "\n"
      "Exit codes: 0 ok, 1 failed, 2 wrong usage or input.");
  Command& tasks = app.AddCommand("tasks", "List the sample's tasks and which are held out");
  Command& collect =
      app.AddCommand("collect", "Measure candidates of the sample's tasks on this machine");
  Command& judge =
      app.AddCommand("judge", "Judge cost models on tasks that they were not trained on");
  Command& learn =
      app.AddCommand("learn", "Write a store that has learned from the sample's development tasks");
  Command& compare = app.AddCommand("compare", "Compare ways to tune with the real service");
  Command& claims =
      app.AddCommand("claims", "Run the presets of what the literature claims about search");
  Command& verdicts =
      app.AddCommand("verdicts", "Say which of these claims hold, from the lines of their runs");
  Command& slice = app.AddCommand(
      "slice", "Measure a good schedule of an operator with every value of one decision");
  flags.list = "tests/bench/sample/tasks.txt";
  for (Command* command : {&tasks, &collect, &compare}) {
    command->Add("--tasks", flags.list, "List of tasks (default tests/bench/sample/tasks.txt)",
                 {ExistingFile()});
    command->AddFlag("--held-out", flags.held_out, "Only the tasks that are held out");
    command->AddFlag("--development", flags.development, "Only the tasks that are not held out",
                     {Excludes("--held-out")});
  }
  for (Command* command : {&tasks, &collect, &judge, &compare})
    command->Add("--only", flags.only, "Only tasks whose name contains this text");
  collect.Add("--work", flags.collect.work_folder,
              "Folder of the store; a repeated command continues from it", {Required()});
  collect.Add("--out", flags.collect.out, "The dataset; its tasks are not measured again",
              {Required()});
  collect.Add(
      "--target", flags.collect.target,
      "Target of hone tune, such as opencl (default native); or a CPU that need not be here, "
      "such as arm/cortex-a76, for which costs are modelled instead of measured: --searched "
      "and --learned do not apply");
  collect.Add("--uniform", flags.collect.uniform, "Uniform draws of each task (default 300)",
              {Range(0, 100000)});
  collect.Add("--drafted", flags.collect.drafted, "First candidates of the draft (default 64)",
              {Range(0, 100000)});
  collect.Add("--searched", flags.collect.searched,
              "Trials of the default search after them (default 64)", {Range(0, 100000)});
  collect.Add("--learned", flags.collect.learned,
              "First candidates of a draft that was learned from other tasks (default 0)",
              {Range(0, 100000)});
  judge.Add("datasets", flags.datasets, "Datasets of the sample", {Required(), ExistingFile()});
  judge.Add(
      "--cost-model", flags.models,
      "Cost model, after presets+ as a residual over the draft; or presets, the draft without "
      "training; or modelled, LLVM's model of the CPU, "
      "which compiles every candidate; may be repeated (default: presets, draft, residual, "
      "xgboost, mlp, random)",
      {OneWordPerUse()});
  judge.Add("--calibration", flags.calibration,
            "Judge with these measured constants, as hone-runner --measure-peak prints them");
  judge.Add("--learn-from", flags.learn_from,
            "Train on the development tasks of this dataset, which another machine made",
            {ExistingFile()});
  judge.AddFlag("--held-out", flags.training.held_out_only,
                "Judge only the held-out tasks, with one training instead of six");
  judge.AddFlag("--with-own", flags.training.with_own,
                "With --learn-from: also train on the tasks of the judged sample, as a target of "
                "its own, within --train-tasks and --train-results");
  judge.Add("--results", flags.read.results,
            "Read at most this many results of each task, evenly (default 0, all)",
            {Range(0, 100000)});
  judge.Add("--train-tasks", flags.training.tasks,
            "Train on at most this many tasks, as in a young store (default 0, all)",
            {Range(0, 100000)});
  judge.Add("--train-results", flags.training.results,
            "Train on at most this many results of each task (default 0, all)", {Range(0, 100000)});
  judge.AddFlag("--per-task", flags.per_task, "Also print a line for each task");
  judge.Add("--threads", flags.threads, "Threads that extract features (default: one per core)",
            {Range(1, 1024)});
  learn.Add("dataset", flags.sample, "The sample", {Required(), ExistingFile()});
  learn.Add("--out", flags.out, "The store", {Required()});
  compare.Add(
      "--variant", flags.variants,
      "LABEL=STRATEGY[,COST-MODEL[,FEATURE-SET[,STORE]]]; may be repeated; empty parts mean "
      "the defaults, and every run begins with a copy of the store",
      {Required(), OneWordPerUse()});
  compare.Add("--seeds", flags.comparison.seeds, "Runs of each variant on each task (default 1)",
              {Range(1, 1000)});
  compare.Add("--trials", flags.comparison.trials, "Trials of a run (default 64)",
              {Range(1, 1000000)});
  compare.Add("--target", flags.target, "Target of hone tune, such as cuda");
  compare.Add("--space", flags.space, "Design spaces of hone tune, such as templates");
  compare.Add("--tolerance", flags.tolerance, "Tolerance of hone tune");
  compare.Add("--sample", flags.sample,
              "Dataset of this machine, whose fastest candidates are known, too", {ExistingFile()});
  compare.Add("--out", flags.out, "Folder for summary.md, runs.csv and the stores of the runs",
              {Required()});
  claims.Add("presets", flags.presets, "Presets (default: all)");
  claims.AddFlag("--list", flags.list_presets, "Only list the presets, and what they can run on");
  claims.Add("--out", flags.claims.out,
             "Folder with a file of JSON lines for each preset; a repeated command runs only what "
             "is missing");
  claims.AddFlag("--machine", flags.claims.on_machine,
                 "Tune on this machine, instead of on simulated devices and measured samples");
  claims.AddFlag("--small", flags.claims.small,
                 "Few trials and small populations: all presets in some minutes");
  claims.Add("--seeds", flags.claims.seeds,
             "Runs of each way to search on each task (default 5, with --small 2)",
             {Range(1, 1000)});
  claims.Add("--trials", flags.claims.trials, "Trials of a run (default: those of the preset)",
             {Range(1, 1000000)});
  claims.Add("--sample", flags.claims.sample,
             "Dataset of the presets that need measured candidates", {ExistingFile()});
  claims.Add("--other", flags.claims.other,
             "Dataset of another machine, from which models also learn", {ExistingFile()});
  claims.Add(
      "--pools", flags.claims.pools,
      "Dataset with many candidates of a few held-out tasks; tlp-topk orders these instead of "
      "the sample's",
      {ExistingFile()});
  verdicts.Add("folder", flags.sample, "The folder of the lines", {Required()});
  verdicts.Add("--out", flags.out,
               "Also write the table to this file; its rows of other devices and trials are kept");
  slice.Add("operator", flags.words, "Operator with its shape, such as matmul m=512 n=512 k=512",
            {Required()});
  slice.Add("--out", flags.slice.out, "Folder for slice.md, slice.svg and the stores of both runs",
            {Required()});
  slice.Add("--trials", flags.slice.trials, "Trials of the search for the schedule (default 64)",
            {Range(1, 1000000)});
  slice.Add("--decision", flags.slice.site,
            "Number of the decision, from 0 (default: the one with the most values up to 256)",
            {Range(0, 10000)});
  slice.OnRun([&] { return RunSlice(flags); });
  tasks.OnRun([&] { return ListTasks(flags); });
  claims.OnRun([&] { return RunClaims(flags); });
  verdicts.OnRun([&] { return WriteVerdicts(flags.sample, flags.out); });
  collect.OnRun([&] { return CollectSample(flags); });
  judge.OnRun([&] { return JudgeModels(flags); });
  learn.OnRun([&] { return Learn(flags.sample, flags.out); });
  compare.OnRun([&] { return CompareVariants(flags); });
  app.RequireCommand(1, 1);
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

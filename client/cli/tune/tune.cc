#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/network/network_tune.h"
#include "client/cli/npy_argument.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/known_best.h"
#include "client/cli/session.h"
#include "client/cli/suggested_command.h"
#include "client/cli/tune/run_job.h"
#include "client/cli/tune/tune_report.h"
#include "client/cli/workload_argument.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"
#include "common/schedule/trace.h"

namespace hone::cli {
namespace {

constexpr char kRules[] = "rules";  // the default

// Whether it can be the name of a space maker. The server knows which names exist.
bool IsName(absl::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  });
}

// Reads the value of --space. Returns the name of a space maker ("" for "rules"; the server checks
// the name), or for "trace:FILE" the text of the file. InvalidArgument: the value is neither, the
// file cannot be read, or its text is malformed (the message begins with file:line:column).
absl::StatusOr<std::string> ReadSpaceArgument(const std::string& argument) {
  absl::string_view path = argument;
  if (!absl::ConsumePrefix(&path, "trace:")) {
    if (IsName(argument)) return argument == kRules ? std::string() : argument;
    return absl::InvalidArgumentError(absl::StrCat(
        "--space ", argument, ": expected a name, such as rules or templates, or trace:FILE"));
  }
  if (path.empty()) return absl::InvalidArgumentError("--space trace: names no file");
  HONE_ASSIGN_OR_RETURN(std::string text, ReadTextArgument(std::string(path)));
  const absl::Status parsed = schedule::ParseTraceFile(text).status();
  if (!parsed.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ":", parsed.message()));
  return text;
}

// The workload of a trace file. REQUIRES: `text` was returned by ReadSpaceArgument.
absl::StatusOr<WorkloadArgument> WorkloadOfTrace(const std::string& title,
                                                 const std::string& text) {
  HONE_ASSIGN_OR_RETURN(schedule::TraceFile file, schedule::ParseTraceFile(text));
  WorkloadArgument argument;
  argument.title = title;
  argument.words = absl::StrCat("--space ", ShellWord(title));
  argument.text = file.workload.ToText();
  argument.workload = std::move(file.workload);
  return argument;
}

constexpr int64_t kDefaultTrials = 256;

struct TuneOptions {
  std::vector<std::string> words;
  int64_t trials = 0;
  std::string time;
  uint64_t seed = 0;
  std::string strategy;
  std::string cost_model;
  std::string space = "rules";
  std::string feature_set;
  std::string priority;
  double tolerance = 0;
  bool trace = false;
  std::string file;  // a list of workloads
  bool detach = false;
  bool fail_if_unconfirmed = false;
  std::vector<std::string> in;
  // Of networks only.
  std::vector<std::string> shapes;
  std::string scheduler;
  int64_t patience = 0;
  bool only_missing = false;
  std::string report;
  std::string between = "f32";

  bool HasNetworkOptions() const {
    return !shapes.empty() || !scheduler.empty() || patience > 0 || only_missing ||
           !report.empty() || between != "f32";
  }
};

// A workload and the job that tunes it.
struct TuneJob {
  WorkloadArgument argument;
  v1::CreateJobRequest spec;
  std::string inputs;  // that it measures on (ReadGivenInputs)
};

// The outcome of the default schedule, for an error message, or "" if it worked. If even the
// default schedule fails, its outcome is the best hint at the cause.
std::string WhyDefaultFailed(const v1::Job& job) {
  if (!job.has_default_schedule()) return "";
  const v1::MeasureResult& result = job.default_schedule().record().result();
  if (result.outcome() == v1::OUTCOME_OK) return "";
  return absl::StrCat("; the untiled default: ", client::OutcomeName(result.outcome()),
                      result.detail().empty() ? "" : ": ", result.detail());
}

// Checks that a trace is for the workload. InvalidArgument: the trace is for another computation or
// for another shape.
absl::Status CheckSchedules(const std::string& title, const std::string& trace,
                            const WorkloadArgument& argument) {
  HONE_ASSIGN_OR_RETURN(const WorkloadArgument own, WorkloadOfTrace(title, trace));
  if (own.workload.StructuralDigest() == argument.workload.StructuralDigest()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--space ", title, " is for another computation: it schedules ",
                   ir::SignatureText(own.workload), ", not ", ir::SignatureText(argument.workload),
                   " (", argument.title,
                   "); omit the operator to tune the workload of the trace, or tune the operator "
                   "without --space"));
}

// The fields that all jobs of the command line share.
absl::StatusOr<v1::CreateJobRequest> CommonSpec(const TuneOptions& options) {
  v1::CreateJobRequest spec;
  spec.set_max_trials(options.trials);
  if (!options.time.empty()) {
    HONE_ASSIGN_OR_RETURN(const absl::Duration time, ParseDuration(options.time));
    spec.set_max_time_ms(std::max<int64_t>(1, absl::ToInt64Milliseconds(time)));
  }
  spec.set_seed(options.seed);
  spec.set_strategy(options.strategy);
  spec.set_cost_model(options.cost_model);
  spec.set_feature_set(options.feature_set);
  spec.set_priority(options.priority);
  spec.set_tolerance(options.tolerance);
  return spec;
}

absl::StatusOr<std::vector<WorkloadArgument>> WorkloadsOf(const TuneOptions& options,
                                                          const std::string& space) {
  if (!options.file.empty()) return ReadWorkloadList(options.file);
  if (!options.words.empty() || !IsTrace(space)) return ReadWorkloads(options.words);
  HONE_ASSIGN_OR_RETURN(WorkloadArgument argument, WorkloadOfTrace(options.space, space));
  return std::vector<WorkloadArgument>{std::move(argument)};
}

// A limit for one of several workloads that divide it by weight. 0: there is no limit.
int64_t PartOf(int64_t limit, double factor) {
  if (limit == 0) return 0;
  constexpr double kMost = 1e15;
  return std::max<int64_t>(1, std::llround(std::min(kMost, static_cast<double>(limit) * factor)));
}

// The jobs of the command line. Their targets are not set.
absl::StatusOr<std::vector<TuneJob>> JobsOf(const TuneOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::string space, ReadSpaceArgument(options.space));
  HONE_ASSIGN_OR_RETURN(std::vector<WorkloadArgument> arguments, WorkloadsOf(options, space));
  HONE_ASSIGN_OR_RETURN(v1::CreateJobRequest spec, CommonSpec(options));
  if (spec.max_trials() == 0 && spec.max_time_ms() == 0) spec.set_max_trials(kDefaultTrials);
  spec.set_space(space);
  if (!options.in.empty() && arguments.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--in gives the inputs of one operator, and there are ", arguments.size()));
  }
  std::vector<TuneJob> jobs;
  for (WorkloadArgument& argument : arguments) {
    if (IsTrace(space)) HONE_RETURN_IF_ERROR(CheckSchedules(options.space, space, argument));
    HONE_ASSIGN_OR_RETURN(std::string inputs, ReadGivenInputs(options.in, argument.workload));
    TuneJob& job = jobs.emplace_back(TuneJob{{}, spec, std::move(inputs)});
    job.spec.set_workload(argument.text);
    job.spec.set_max_trials(PartOf(spec.max_trials(), argument.budget_factor));
    job.spec.set_max_time_ms(PartOf(spec.max_time_ms(), argument.budget_factor));
    job.argument = std::move(argument);
  }
  return jobs;
}

// Ok if the job found a working schedule and was not cancelled.
absl::Status ResultOf(const FollowedJob& followed, const TuneOptions& options) {
  HONE_RETURN_IF_ERROR(CheckNotCancelled(followed));
  const v1::Job& job = followed.job;
  if (job.state() == v1::JOB_STATE_FAILED) {
    return absl::AbortedError(absl::StrCat(
        "job ", job.id(), " failed: ", WithRepeatedOptions(job.error()), WhyDefaultFailed(job)));
  }
  if (!job.has_best()) {
    return absl::AbortedError(absl::StrCat("job ", job.id(), " ended without a working schedule (",
                                           job.trials() == 0 ? "no trial" : OutcomesText(job), ")",
                                           WhyDefaultFailed(job), FailuresHint(job)));
  }
  if (options.fail_if_unconfirmed && !client::LatencyIsConfirmed(job.best())) {
    return absl::AbortedError(absl::StrCat("the best of job ", job.id(), " is not confirmed"));
  }
  return absl::OkStatus();
}

// Tunes one workload. Prints its report, or adds it to `reports` as JSON.
absl::Status TuneOne(const Globals& globals, const TuneOptions& options, Session& session,
                     const TuneJob& job, Json& reports) {
  const absl::StatusOr<FollowedJob> followed = RunJob(session, job.spec);
  const absl::Status result = followed.ok() ? ResultOf(*followed, options) : followed.status();
  Json report = {{"workload", job.argument.text}};
  if (followed.ok()) {
    const double peak = PeakOf(followed->job);
    if (globals.json) {
      report = TuneJson(followed->job, peak, followed->trials_per_second);
    } else {
      PrintTuneReport(followed->job, job.argument.title, peak, options.trace);
    }
  }
  if (!result.ok()) report["error"] = std::string(result.message());
  reports.push_back(std::move(report));
  return result;
}

// Says which workloads were not tuned, because the command ended before.
void ReportNotStarted(const Globals& globals, absl::Span<const TuneJob> jobs, Json& reports) {
  if (jobs.empty()) return;
  for (const TuneJob& job : jobs) {
    reports.push_back({{"workload", job.argument.text}, {"state", "not started"}});
  }
  if (globals.json) return;
  PrintWrapped(stderr,
               absl::StrCat("not started: ",
                            absl::StrJoin(jobs, ", ", [](std::string* out, const auto& job) {
                              *out += job.argument.title;
                            })));
}

// Tunes one workload after the other. A failure does not prevent the next one.
absl::Status TuneAll(const Globals& globals, const TuneOptions& options, Session& session,
                     const std::vector<TuneJob>& jobs) {
  Json reports = Json::array();
  int failed = 0;
  absl::Status result;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (i > 0 && !globals.json) absl::PrintF("\n");
    result = TuneOne(globals, options, session, jobs[i], reports);
    const ExitCode code = ExitCodeFor(result);
    if (code == kExitInterrupted || code == kExitUnreachable || jobs.size() == 1) {
      ReportNotStarted(globals, absl::MakeConstSpan(jobs).subspan(i + 1), reports);
      break;
    }
    if (!result.ok()) {
      ++failed;
      PrintWrapped(stderr, absl::StrCat("hone: ", jobs[i].argument.title, ": ", result.message()));
    }
    if (failed > 0) {
      result =
          absl::AbortedError(absl::StrCat(failed, " of the ", jobs.size(), " workloads failed"));
    }
  }
  if (!globals.json) return result;
  return PrintJson(jobs.size() == 1 ? reports[0] : Json{{"jobs", std::move(reports)}}, result);
}

// Creates the jobs without waiting for them.
absl::Status Detach(const Globals& globals, Session& session, const std::vector<TuneJob>& jobs) {
  std::vector<v1::Job> created;
  absl::Status result;
  for (const TuneJob& each : jobs) {
    absl::StatusOr<v1::Job> job = session.connection().CreateJob(
        each.spec, ExplainCreation(session.connection(), each.spec.target()));
    result = job.status();
    if (!result.ok()) break;
    if (!globals.json) {
      PrintWrapped(absl::StrCat("job ", job->id(), ": ", each.argument.title, "; ",
                                SuggestedCommand("jobs watch " + job->id()), " follows it"));
    }
    created.push_back(*std::move(job));
  }
  return globals.json ? PrintJson({{"jobs", ListJson(created)}}, result) : result;
}

absl::Status TuneNetworkOf(const Globals& globals, const TuneOptions& options) {
  if (!options.in.empty()) {
    return absl::InvalidArgumentError(
        "--in is for operators; the tasks of a network are measured on seeded inputs");
  }
  if (options.space != TuneOptions().space) {
    return absl::InvalidArgumentError("--space is for operators; a network uses the rules");
  }
  HONE_ASSIGN_OR_RETURN(v1::CreateJobRequest request, CommonSpec(options));
  v1::NetworkRequest& network = *request.mutable_network();
  network.set_scheduler(options.scheduler);
  network.set_patience(options.patience);
  network.set_only_missing(options.only_missing);
  return TuneNetwork(globals, {.words = {options.words[0], options.shapes},
                               .request = std::move(request),
                               .detach = options.detach,
                               .report = options.report,
                               .between = options.between});
}

absl::Status Tune(const Globals& globals, const TuneOptions& options) {
  if (options.detach && globals.server.empty()) {
    return absl::InvalidArgumentError(
        "--detach needs --server: a private server ends with this command, and its jobs with it");
  }
  if (NamesNetwork(options.words)) return TuneNetworkOf(globals, options);
  if (options.HasNetworkOptions()) {
    return absl::InvalidArgumentError(
        "--shape, --scheduler, --patience, --only-missing, --between and --report are for a "
        "network (FILE.onnx)");
  }
  HONE_ASSIGN_OR_RETURN(std::vector<TuneJob> jobs, JobsOf(options));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->TargetForTuning());
  for (TuneJob& job : jobs) {
    job.spec.set_target(target);
    if (job.inputs.empty()) continue;
    HONE_ASSIGN_OR_RETURN(*job.spec.mutable_inputs_digest(),
                          session->connection().UploadInputs(job.inputs));
  }
  return options.detach ? Detach(globals, *session, jobs)
                        : TuneAll(globals, options, *session, jobs);
}

}  // namespace

void AddTune(Command& app, Globals& globals) {
  Command& command =
      app.AddCommand("tune", "Search for the fastest schedule of an operator or a network");
  auto options = std::make_shared<TuneOptions>();
  AddWorkloadWords(command, options->words, /*required=*/false, Names::kOperatorOrNetwork);
  command.Add(
      "--trials", options->trials,
      "Measure at most this many candidates (default 256 without --time; for a network, 32 for "
      "each task)",
      {Range(1, 100'000'000)});
  command.Add(
      "--time", options->time,
      "Time limit, such as 60s, 10m or 1h30m; a number alone means seconds. It includes the "
      "confirmation, which gets a "
      "quarter of it and at most 20 s (8 s for each task of a network), and for the first "
      "workload the start of the worker; a job gets at least 1 s, however long that takes. "
      "A job that has no result when its time is over waits up to 1.2 s for the first one: 1s "
      "takes about 3 s. On a busy machine, the job may then end with an unconfirmed best or "
      "without one. "
      "It does not include the timing of the whole "
      "network at the end, which takes a few seconds",
      {NotEmpty()});
  command.Add("--seed", options->seed, "Seed of the search", {Seed()});
  command.Add("--strategy", options->strategy, "Search strategy; an unknown name prints the list",
              {NotEmpty()});
  command.Add("--cost-model", options->cost_model, "Cost model; an unknown name prints the list",
              {NotEmpty()});
  command.Add("--feature-set", options->feature_set,
              "Feature set for the cost model, instead of its own", {NotEmpty()});
  command.Add("--priority", options->priority,
              "low, normal (default) or high: the job's share of the workers while other jobs run",
              {OneOf({"low", "normal", "high"})});
  command.Add("--space", options->space,
              "Design space: rules (default), templates (like AutoTVM's, for some operators), or "
              "trace:FILE, a handwritten schedule whose open samplings are searched");
  command.Add("--tolerance", options->tolerance,
              "Allowed relative error of the output; 0 (default) is strict. Winograd convolutions "
              "need 1.7e-6 to 1.2e-4 in f32. Their error is relative to the largest magnitude in a "
              "tile: an output whose own window is much smaller than the rest of the tile can have "
              "a larger error. Products of factors rounded to bf16 need 7.83e-3, on CPUs with "
              "instructions for them",
              {Range(0.0, 0.5)});
  command.Add("--file", options->file,
              "LIST of workloads to tune, one on each line; - reads standard input. Names of files "
              "in it are relative to the current folder",
              {NotEmpty(), Excludes("operator")});
  AddGivenInputs(command, options->in);
  command.AddFlag("--detach", options->detach,
                  "Create the jobs and exit; hone jobs watch follows one. Needs --server, which "
                  "waits at most 15 s for a worker of the target");
  command.AddFlag("--fail-if-unconfirmed", options->fail_if_unconfirmed,
                  "Exit with 1 if the best at the end is not confirmed; a confirmed best of an "
                  "earlier job, or a pinned one, counts if it stays the best",
                  {Excludes("--detach")});
  command.AddFlag("--trace", options->trace, "Also print the trace of the best schedule",
                  {Excludes("--detach")});
  AddShapes(command, options->shapes);
  command.Add(
      "--scheduler", options->scheduler,
      "Decides which task of a network gets the next trials; an unknown name prints the list",
      {NotEmpty()});
  command.Add("--patience", options->patience,
              "Stop tuning a network after this many trials without an improvement",
              {Range(1, 100'000'000)});
  command.AddFlag("--only-missing", options->only_missing,
                  "Tune only those tasks of a network that have no known best");
  command.Add("--between", options->between,
              "How the tensors between the kernels of a network are stored in the tasks that are "
              "tuned: f32, or bf16 where hone run --between bf16 with the same tolerance stores "
              "them so. The network is first run with the schedules that are known, on random "
              "inputs",
              {OneOf({"bf16", "f32"}), ShowDefault()});
  command.Add("--report", options->report,
              "FILE.html to write about a network: its tasks, their latencies and rooflines, and "
              "the estimate over time",
              {NotEmpty(), Excludes("--detach")});
  Complete(
      command, globals,
      "At the end of the search, its fastest candidates, the finalists, are confirmed: each is "
      "measured in three new processes, if there is time. Without --time, this takes at most a "
      "quarter of the time of the search or, if that is longer, 20 s (20 s for each task of a "
      "network). On a busy machine most of this time may pass, because hone waits for a quieter "
      "moment and measures again. A figure marked with ~ is not confirmed and may change. hone "
      "best does not return it, except for a best that other work disturbed in every process that "
      "measured it: a network needs a kernel for each task. A speed-up is shown if the default "
      "schedule was "
      "also confirmed. In JSON, \"processes\" is the number of processes that measured a best, and "
      "\"trials_per_min\" is the speed of the search, which the progress line shows in trials/s: "
      "waits and the confirmation do not count. It is 0 if it is unknown.\n\n"
      "Ctrl-C ends the search and confirms the finalists for at most 30 s; a second Ctrl-C ends "
      "immediately. Measurements are kept in both cases, and the exit code is "
      "130. If another command cancels the job, the exit code is 1. hone jobs resume continues a "
      "cancelled job.\n\n"
      "Several workloads are tuned one after the other, each with the given limits. If one fails, "
      "the next one is tuned nevertheless, and the exit code is 1. Ctrl-C also skips those that "
      "have not started. With --json they are the list \"jobs\", and the state of those is "
      "\"not started\". With --space trace:FILE, the operator may be omitted: the trace names its "
      "workload.\n\n"
      "A network, FILE.onnx, is divided into tasks, which share the trials of one job. The result "
      "lists the tasks and the latency of the whole network.\n\n"
      "Examples:\n"
      "  hone tune matmul m=1024 n=1024 k=1024 --trials 256\n"
      "  hone tune conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1 --time 60s\n"
      "  hone tune dense_relu m=128 n=768 k=768 --space templates --strategy annealing \\\n"
      "    --cost-model xgboost-rank --feature-set knob\n"
      "  hone tune matmul m=64 n=64 k=64 softmax m=64 n=64 mine.hone --trials 64\n"
      "  hone tune --file network.txt --trials 200 --fail-if-unconfirmed\n"
      "  hone tune --space trace:mine.trace --trials 64\n"
      "  hone tune softmax m=512 n=512 --in activations.npy\n"
      "  hone tune resnet50.onnx --trials 2000 --shape data=1x3x224x224\n"
      "  hone tune mine.hone --json --seed 7 | jq .best.gflops",
      [&globals, options] { return Tune(globals, *options); });
}

}  // namespace hone::cli

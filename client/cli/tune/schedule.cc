#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/npy_argument.h"
#include "client/cli/output/json_output.h"
#include "client/cli/session.h"
#include "client/cli/suggested_command.h"
#include "client/cli/tune/apply_trace.h"
#include "client/cli/tune/run_job.h"
#include "client/cli/tune/tune_report.h"
#include "client/cli/workload_argument.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

struct ScheduleOptions {
  std::string file;
  bool print = false;
  bool check = false;
  uint64_t seed = 0;
  double tolerance = 0;
  std::vector<std::string> in;
};

void PrintSteps(const std::string& file, const std::vector<TraceStep>& steps) {
  for (const TraceStep& step : steps) {
    if (step.line == 0) {
      absl::PrintF("# unscheduled\n%s\n", step.program);
    } else {
      absl::PrintF("# %s:%d  %s\n%s\n", file, step.line, step.instruction, step.program);
    }
  }
}

Json StepsJson(const std::vector<TraceStep>& steps) {
  Json json = Json::array();
  for (const TraceStep& step : steps) {
    json.push_back(
        {{"line", step.line}, {"instruction", step.instruction}, {"program", step.program}});
  }
  return json;
}

// Runs a job whose design space contains only this candidate.
absl::StatusOr<FollowedJob> Check(const Globals& globals, const ScheduleOptions& options,
                                  const AppliedTrace& applied) {
  v1::CreateJobRequest spec;
  spec.set_workload(applied.workload->ToText());
  spec.set_space(applied.Text());
  spec.set_max_trials(1);
  spec.set_seed(options.seed);
  spec.set_tolerance(options.tolerance);
  HONE_ASSIGN_OR_RETURN(const std::string inputs, ReadGivenInputs(options.in, *applied.workload));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  if (!inputs.empty()) {
    HONE_ASSIGN_OR_RETURN(*spec.mutable_inputs_digest(),
                          session->connection().UploadInputs(inputs));
  }
  HONE_ASSIGN_OR_RETURN(*spec.mutable_target(), session->TargetForTuning());
  return RunJob(*session, spec);
}

// Ok if the schedule passed the check.
absl::Status ResultOf(const FollowedJob& followed, const std::string& file) {
  HONE_RETURN_IF_ERROR(CheckNotCancelled(followed));
  const v1::Job& job = followed.job;
  if (PassedCheck(job)) return absl::OkStatus();
  if (!job.has_given()) {
    return absl::AbortedError(
        absl::StrCat("job ", job.id(), " ended before the schedule was measured",
                     job.error().empty() ? "" : ": ", WithRepeatedOptions(job.error())));
  }
  const v1::MeasureResult& result = job.given().record().result();
  return absl::AbortedError(absl::StrCat(file, ": ", client::OutcomeName(result.outcome()),
                                         result.detail().empty() ? "" : ": ", result.detail()));
}

absl::Status Schedule(const Globals& globals, const ScheduleOptions& options) {
  if (!options.in.empty() && !options.check) {
    return absl::InvalidArgumentError("--in needs --check, which measures the schedule");
  }
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadTextArgument(options.file));
  HONE_ASSIGN_OR_RETURN(const AppliedTrace applied, ApplyTrace(options.file, text, options.seed));
  std::vector<TraceStep> steps;
  if (options.print) {
    HONE_ASSIGN_OR_RETURN(steps, StepsOf(applied));
  }
  Json json = {{"workload", applied.workload->ToText()}, {"trace", applied.Text()}};
  if (globals.json) {
    if (options.print) json["steps"] = StepsJson(steps);
    json["program"] = applied.program.ToText();
  } else if (options.print) {
    PrintSteps(options.file, steps);
  } else if (!options.check) {
    std::fputs(applied.program.ToText().c_str(), stdout);
  }
  std::fflush(stdout);
  if (!options.check) {
    return globals.json ? PrintJson(json) : absl::OkStatus();
  }

  HONE_ASSIGN_OR_RETURN(const FollowedJob followed, Check(globals, options, applied));
  const v1::Job& job = followed.job;
  const absl::Status result = ResultOf(followed, options.file);
  if (globals.json) {
    AddCheckJson(job, json);
    return PrintJson(json, result);
  }
  if (PassedCheck(job)) PrintCheck(job);
  return result;
}

}  // namespace

void AddSchedule(Command& app, Globals& globals) {
  Command& command = app.AddCommand(
      "schedule", "Apply a handwritten schedule; show its program, check it and time it");
  auto options = std::make_shared<ScheduleOptions>();
  command.Add("file", options->file,
              "FILE.trace: the workload, a line \"trace 1\", one instruction per line; \"-\" reads "
              "standard input",
              {Required()});
  command.AddFlag("--print", options->print, "Print the program after each instruction");
  command.AddFlag("--check", options->check,
                  "Compile the schedule, compare its output with the reference, and time it like a "
                  "finalist of tuning");
  command.Add("--seed", options->seed, "Seed of the decisions that the trace leaves open",
              {Seed()});
  command.Add("--tolerance", options->tolerance,
              "Allowed relative error of the output; 0 (default) is strict", {Range(0.0, 0.5)});
  AddGivenInputs(command, options->in);
  Complete(
      command, globals,
      "Without --print and --check, prints the program that results from the trace. A checked "
      "schedule is measured like any candidate, and becomes the best if it is confirmed and no "
      "faster one is known. A figure marked with ~ is not confirmed (confirmed is false in "
      "JSON). The exit code is 2 if the trace is wrong, and 1 if the check fails.\n\n"
      "Examples:\n"
      "  hone schedule mine.trace --print\n"
      "  hone schedule mine.trace --check --json | jq .share_of_peak\n"
      "  hone show matmul m=512 n=512 k=512 --trace > mine.trace",
      [&globals, options] { return Schedule(globals, *options); });
}

}  // namespace hone::cli

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/apply_trace.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/json_output.h"
#include "client/cli/run_job.h"
#include "client/cli/session.h"
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
  client::JobSpec spec;
  spec.workload = applied.workload->ToText();
  spec.space = applied.Text();
  spec.max_trials = 1;
  spec.seed = options.seed;
  spec.tolerance = options.tolerance;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(spec.target, session->TargetForTuning());
  return RunJob(*session, spec);
}

bool Passed(const client::Job& job) {
  return job.given.has_value() && job.given->record.result.outcome == record::Outcome::kOk;
}

// Ok if the schedule passed the check.
absl::Status ResultOf(const FollowedJob& followed, const std::string& file) {
  HONE_RETURN_IF_ERROR(CheckNotCancelled(followed));
  const client::Job& job = followed.job;
  if (Passed(job)) return absl::OkStatus();
  if (!job.given.has_value()) {
    return absl::AbortedError(absl::StrCat("job ", job.id,
                                           " ended before the schedule was measured",
                                           job.error.empty() ? "" : ": ", job.error));
  }
  const record::MeasureResult& result = job.given->record.result;
  return absl::AbortedError(absl::StrCat(file, ": ", record::OutcomeName(result.outcome),
                                         result.detail.empty() ? "" : ": ", result.detail));
}

void AddCheck(const client::Job& job, Json& json) {
  const bool passed = Passed(job);
  json["target"] = job.target;
  json["latency_ns"] = nullptr;
  json["gflops"] = nullptr;
  json["peak_gflops"] = nullptr;
  json["share_of_peak"] = nullptr;
  json["checked"] = passed;
  if (job.given.has_value()) {
    const client::Best& given = *job.given;
    const record::MeasureResult& result = given.record.result;
    if (passed) {
      json["latency_ns"] = client::LatencyNs(given);
      json["gflops"] = given.gflops;
      if (given.peak_gflops > 0) {
        json["peak_gflops"] = given.peak_gflops;
        json["share_of_peak"] = given.gflops / given.peak_gflops;
      }
    }
    json["outcome"] = std::string(record::OutcomeName(result.outcome));
    json["detail"] = result.detail;
    json["max_error"] = result.max_error;
    json["compile_ms"] = result.facts.compile_ms;
    json["policy"] = given.record.policy.Key();
  }
  json["default"] = LatencyJson(job.default_schedule);
  json["best"] = LatencyJson(job.best);
  json["job"] = job.id;
  json["state"] = std::string(client::JobStateName(job.state));
}

void PrintCheck(const client::Job& job) {
  const client::Best& given = *job.given;
  const record::MeasureResult& result = given.record.result;
  absl::PrintF("checked   correct: the largest error is %.3g of the allowed error\n",
               result.max_error);
  // The detail of a measurement that succeeded is what was unusual about it.
  absl::PrintF("latency   %s on %s%s\n", FormatLatency(client::LatencyNs(given)), job.target,
               result.detail.empty() ? "" : absl::StrCat(" (", result.detail, ")"));
  absl::PrintF("GFLOP/s   %s (%s of the peak of %s)\n", FormatGflops(given.gflops),
               FormatShare(given.gflops, given.peak_gflops), FormatGflops(given.peak_gflops));
  absl::PrintF("compiled  in %.1f ms\n", result.facts.compile_ms);
  if (job.default_schedule.has_value()) {
    const double untiled = client::LatencyNs(*job.default_schedule);
    if (untiled > 0 && client::LatencyNs(given) > 0) {
      absl::PrintF("default   %s, %.2f times as long\n", FormatLatency(untiled),
                   untiled / client::LatencyNs(given));
    }
  }
  if (job.best.has_value() && job.best->record.candidate != given.record.candidate) {
    absl::PrintF("best      %s is known\n", FormatLatency(client::LatencyNs(*job.best)));
  } else if (job.best.has_value()) {
    absl::PrintF("best      this schedule; no faster one is known\n");
  }
  std::fflush(stdout);
}

absl::Status Schedule(const Globals& globals, const ScheduleOptions& options) {
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
  const client::Job& job = followed.job;
  const absl::Status result = ResultOf(followed, options.file);
  if (globals.json) {
    AddCheck(job, json);
    return PrintJson(json, result);
  }
  if (Passed(job)) PrintCheck(job);
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
  Complete(command, globals,
           "Without --print and --check, prints the program that results from the trace. A checked "
           "schedule is measured like any candidate, and becomes the best if no faster one is "
           "known. The exit code is 2 if the trace is wrong, and 1 if the check fails.\n\n"
           "Examples:\n"
           "  hone schedule mine.trace --print\n"
           "  hone schedule mine.trace --check --json | jq .share_of_peak\n"
           "  hone show matmul m=512 n=512 k=512 --trace > mine.trace",
           [&globals, options] { return Schedule(globals, *options); });
}

}  // namespace hone::cli

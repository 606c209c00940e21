#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/job_remark.h"
#include "client/cli/json_output.h"
#include "client/cli/known_best.h"
#include "client/cli/network_output.h"
#include "client/cli/run_job.h"
#include "client/cli/schedule_report.h"
#include "client/cli/session.h"
#include "client/cli/suggested_command.h"
#include "client/cli/table.h"
#include "client/cli/terminal.h"
#include "client/cli/tune_report.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

// What kind of schedule a best is, and in how many processes it was confirmed, if it was.
std::string Details(const client::Best& best) {
  const absl::string_view kind = best.record.is_default ? ", the untiled default" : "";
  if (!record::IsConfirmed(best.record)) return std::string(kind);
  const int processes = record::ProcessesOf(best.record.result);
  return absl::StrCat(kind, ", measured in ", processes,
                      processes == 1 ? " process" : " processes");
}

// What a line says about a best whose latency is not confirmed, after its name.
absl::string_view Doubt(const client::Best& best) {
  if (client::LatencyIsConfirmed(best)) return "";
  return record::IsConfirmed(best.record) ? ", disturbed" : ", not confirmed";
}

absl::Status ListJobs(const Globals& globals, int limit) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->GivenTargetKey());
  // The server does not select jobs by target. Otherwise, one more job than is printed shows
  // whether there are more.
  const int asked = limit == 0 || !target.empty() ? 0 : limit + 1;
  HONE_ASSIGN_OR_RETURN(std::vector<client::Job> jobs, session->connection().ListJobs(asked));
  std::erase_if(jobs,
                [&](const client::Job& job) { return !target.empty() && job.target != target; });
  const bool more = limit != 0 && jobs.size() > static_cast<size_t>(limit);
  if (more) jobs.resize(static_cast<size_t>(limit));
  if (globals.json) return PrintJson({{"jobs", ListJson(jobs)}, {"more", more}});
  Table table({Left("job"), Left("state"), Right("trials"), Right("best GFLOP/s"),
               Right("best latency"), Right("took"), Left("workload"), Left("target"),
               Left("created"), Left("")});
  for (const client::Job& job : jobs) {
    const double latency = job.network.has_value() ? job.network->latency_ns
                           : job.best.has_value()  ? client::LatencyNs(*job.best)
                                                   : 0;
    const bool confirmed = job.network.has_value()
                               ? client::LatencyIsConfirmed(*job.network).value_or(false)
                               : job.best.has_value() && client::LatencyIsConfirmed(*job.best);
    table.AddRow(
        {job.id, std::string(client::JobStateName(job.state)), absl::StrCat(job.trials),
         MarkUnconfirmed(FormatGflops(job.best.has_value() ? job.best->gflops : 0), confirmed),
         MarkUnconfirmed(FormatLatency(latency), confirmed),
         FormatClock(absl::Milliseconds(job.wall_ms)), DescribeJobAndKind(job), job.target,
         FormatTime(job.created_unix_ms), RemarkOn(job)});
  }
  table.Print(target.empty() ? "no jobs" : absl::StrCat("no jobs of target ", target));
  if (more) PrintWrapped(MoreText(limit, "job"));
  return absl::OkStatus();
}

struct ResumeOptions {
  std::string id;
  int64_t trials = 0;
  std::string time;
};

void PrintNetwork(const client::NetworkProgress& network, bool ended) {
  if (network.latency_ns > 0) {
    absl::PrintF("sum of the tasks: %s", SumText(network));
    if (network.default_latency_ns > 0) {
      absl::PrintF(", with a speed-up of %s over the default schedules",
                   FormatSpeedUp(network.default_latency_ns, network.latency_ns));
    }
    absl::PrintF("\n");
  }
  PrintTasks(network, ended);
}

// Prints the state and the best of a job, or the tasks of its networks. `why`: the reason for the
// state; "" if the caller prints it.
absl::Status PrintJob(const Globals& globals, const client::Job& job, const std::string& why) {
  if (globals.json) return PrintJson(ToJson(job));
  PrintWrapped(absl::StrCat("job ", job.id, ": ", client::JobStateName(job.state), " after ",
                            Counted(job.trials, "trial"), why.empty() ? "" : ": ", why));
  PrintWrapped(JobFacts(job));
  if (job.best.has_value()) {
    const std::string origin = OriginOfBest(job);
    const bool confirmed = client::LatencyIsConfirmed(*job.best);
    const absl::string_view withdrawal = Withdrawal(job);
    PrintWrapped(
        absl::StrCat("best", origin.empty() ? "" : absl::StrCat(" known, ", origin),
                     Doubt(*job.best), withdrawal.empty() ? "" : absl::StrCat(", ", withdrawal),
                     ": ", FormatSpeed(client::LatencyNs(*job.best), job.best->gflops, confirmed),
                     Details(*job.best)));
    if (!withdrawal.empty()) {
      PrintWrapped(
          absl::StrCat("it does not count any more: ", job.best->record.quarantine_reason));
    }
    if (client::BestIsOfAnotherJob(job) && job.own_best.has_value()) {
      const bool own_confirmed = client::LatencyIsConfirmed(*job.own_best);
      PrintWrapped(absl::StrCat(
          "best of this job", Doubt(*job.own_best), ": ",
          FormatSpeed(client::LatencyNs(*job.own_best), job.own_best->gflops, own_confirmed),
          Details(*job.own_best), WhyOwnIsNotBest(job)));
    }
  }
  const bool told = !job.disturbance.empty() && absl::StrContains(why, job.disturbance);
  if (job.disturbed > 0 && !told) PrintWrapped(DisturbedText(job));
  if (job.network.has_value()) PrintNetwork(*job.network, client::HasEnded(job.state));
  return absl::OkStatus();
}

absl::Status PrintJob(const Globals& globals, const client::Job& job) {
  return PrintJob(globals, job,
                  job.error.empty() ? NoteBesideErrors(job) : WithRepeatedOptions(job.error));
}

absl::Status ShowJob(const Globals& globals, const std::string& id) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const client::Job job, session->connection().GetJob(id));
  if (globals.json || HasEnded(job.state)) return PrintJob(globals, job);
  return PrintJob(
      globals, job,
      job.wait_reason.empty() ? PhaseOf(job) : "it waits: " + WithRepeatedOptions(job.wait_reason));
}

absl::Status ResultOf(const FollowedJob& followed) {
  const client::Job& job = followed.job;
  HONE_RETURN_IF_ERROR(CheckNotCancelled(followed));
  if (job.state == client::JobState::kFailed) {
    return absl::AbortedError(
        absl::StrCat("job ", job.id, " failed: ", WithRepeatedOptions(job.error)));
  }
  if (!job.network.has_value() || AllConfirmed(*job.network)) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat(WithoutKernelText(*job.network), "; hone tune with --only-missing tunes them"));
}

// Reports the end of a followed job. The search of an operator gets the report of hone tune.
absl::Status Conclude(const Globals& globals, const FollowedJob& followed) {
  const client::Job& job = followed.job;
  const absl::Status result = ResultOf(followed);
  if (globals.json) return PrintJson(ToJson(job), result);
  const bool is_search = !job.network.has_value() && !IsCheck(job.spec) && job.spec.revalidate == 0;
  if (is_search) {
    PrintTuneReport(job, DescribeJob(job), PeakOf(job), /*trace=*/false);
  } else {
    // The result has the error of a failed job.
    const bool failed = job.state == client::JobState::kFailed;
    HONE_RETURN_IF_ERROR(PrintJob(globals, job, failed ? "" : NoteBesideErrors(job)));
  }
  return result;
}

absl::Status WatchJob(const Globals& globals, const std::string& id) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const client::Job job, session->connection().GetJob(id));
  HONE_ASSIGN_OR_RETURN(const FollowedJob followed, FollowJob(*session, job, OnInterrupt::kLeave));
  return Conclude(globals, followed);
}

absl::Status CancelJob(const Globals& globals, const std::string& id, bool now) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const client::Job before, session->connection().GetJob(id));
  if (HasEnded(before.state)) {
    if (!globals.json)
      PrintWrapped(stderr, "there is nothing to cancel: the job has already ended");
    return PrintJob(globals, before);
  }
  HONE_ASSIGN_OR_RETURN(const client::Job job, session->connection().CancelJob(id, !now));
  if (const std::string text = now ? "" : CancellingText(job); !text.empty()) {
    PrintWrapped(stderr, text);
  }
  HONE_ASSIGN_OR_RETURN(const FollowedJob ended,
                        FollowJob(*session, job, OnInterrupt::kLeaveCancelled));
  return PrintJob(globals, ended.job);
}

absl::Status ResumeJob(const Globals& globals, const ResumeOptions& options) {
  int64_t time_ms = 0;
  if (!options.time.empty()) {
    HONE_ASSIGN_OR_RETURN(const absl::Duration time, ParseDuration(options.time));
    time_ms = absl::ToInt64Milliseconds(time);
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  // A private server stops when we exit, and cancels its jobs. Follow the job to its end.
  if (session->private_server() != nullptr) {
    HONE_ASSIGN_OR_RETURN(const FollowedJob followed,
                          ResumeAndFollow(*session, options.id, options.trials, time_ms));
    return Conclude(globals, followed);
  }
  HONE_ASSIGN_OR_RETURN(const client::Job job,
                        session->connection().ResumeJob(options.id, options.trials, time_ms));
  HONE_RETURN_IF_ERROR(PrintJob(globals, job));
  PrintWrapped(stderr, absl::StrCat("the job continues; ", SuggestedCommand("jobs watch " + job.id),
                                    " follows it"));
  return absl::OkStatus();
}

}  // namespace

void AddJobs(Command& app, Globals& globals) {
  Command& jobs = app.AddCommand("jobs", "List, show, watch, cancel and resume tuning jobs");
  jobs.RequireCommand(1, 1);
  jobs.Footer(
      "Examples:\n"
      "  hone jobs list --server hone.internal:7070\n"
      "  hone jobs watch 4711 --server hone.internal:7070\n"
      "  hone jobs resume 4711 --trials 2000");

  Command& list = jobs.AddCommand("list", "List the jobs of the server, newest first");
  auto limit = std::make_shared<int>(20);
  list.Add("--limit", *limit, "List at most this many; 0 for all (default 20)",
           {Range(0, 1'000'000'000)});
  Complete(list, globals,
           "With --target, only the jobs of that target are listed. A figure marked with ~ is not "
           "confirmed and may change.\n\n"
           "Examples:\n"
           "  hone jobs list\n"
           "  hone jobs list --limit 0 --json | jq '.jobs[] | select(.state == \"failed\")'",
           [&globals, limit] { return ListJobs(globals, *limit); });

  const auto add_id = [](Command& command, std::string& id) {
    command.Add("JOB", id, "The job's number, as hone jobs list prints it", {Required()});
  };
  auto id = std::make_shared<std::string>();
  Command& show =
      jobs.AddCommand("show", "Print the state of a job, and of each task of a network");
  add_id(show, *id);
  CompleteWithoutTarget(
      show, globals,
      "The tasks of a network have jobs of their own: 4711.3 tunes task 3 of job 4711.\n\n"
      "Examples:\n"
      "  hone jobs show 4711 --server hone.internal:7070\n"
      "  hone jobs show 4711.3 --json",
      [&globals, id] { return ShowJob(globals, *id); });

  Command& watch =
      jobs.AddCommand("watch", "Follow a job to its end; Ctrl-C stops watching, not the job");
  add_id(watch, *id);
  CompleteWithoutTarget(watch, globals,
                        "Examples:\n  hone jobs watch 4711 --server hone.internal:7070",
                        [&globals, id] { return WatchJob(globals, *id); });

  Command& cancel = jobs.AddCommand(
      "cancel", "Cancel a job and wait until it has ended; its measurements are kept");
  auto now = std::make_shared<bool>(false);
  add_id(cancel, *id);
  cancel.AddFlag(
      "--now", *now,
      "End the job without confirming its best candidates, as soon as its server has time");
  CompleteWithoutTarget(
      cancel, globals,
      "The job first confirms its best candidates, which takes up to about 30 s, and the command "
      "waits for that. --now skips this, also for a job that is already being cancelled. "
      "Ctrl-C ends only the wait: the job still ends.\n\n"
      "Examples:\n"
      "  hone jobs cancel 4711 --server hone.internal:7070\n"
      "  hone jobs cancel 4711 --now",
      [&globals, id, now] { return CancelJob(globals, *id, *now); });

  Command& resume =
      jobs.AddCommand("resume", "Continue a cancelled or failed job where it stopped");
  auto options = std::make_shared<ResumeOptions>();
  add_id(resume, options->id);
  resume.Add("--trials", options->trials, "New limit of all trials, with those already made",
             {Range(1, 100'000'000)});
  resume.Add("--time", options->time,
             "New limit of the time, with that spent before it was cancelled or failed: 60s, 10m, "
             "1h30m; a number alone means seconds",
             {NotEmpty()});
  CompleteWithoutTarget(
      resume, globals,
      "With --server the command does not wait for the job: hone jobs watch follows it. "
      "Without --server, it follows the job to its end, and ends with the report of hone "
      "tune.\n\n"
      "Examples:\n  hone jobs resume 4711 --trials 2000 --server hone.internal:7070",
      [&globals, options] { return ResumeJob(globals, *options); });
}

}  // namespace hone::cli

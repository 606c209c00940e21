#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/network/network_report.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/network_output.h"
#include "client/cli/output/progress.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/known_best.h"
#include "client/cli/session.h"
#include "client/cli/suggested_command.h"
#include "client/cli/tune/job_remark.h"
#include "client/cli/tune/run_job.h"
#include "client/cli/tune/tune_report.h"
#include "client/cli/workload_argument.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

constexpr char kUnfinished[] = "unfinished";  // for --state

// What kind of schedule a best is, and in how many processes it was confirmed, if it was.
std::string Details(const v1::Best& best) {
  const std::string& proposer = best.record().proposer();
  const std::string kind = best.record().is_default() ? ", the untiled default"
                           : proposer.empty()         ? ""
                                                      : absl::StrCat(", proposed by ", proposer);
  if (!best.confirmed()) return kind;
  const int processes = best.processes();
  return absl::StrCat(kind, ", measured in ", processes,
                      processes == 1 ? " process" : " processes");
}

// What a line says about a best whose latency is not confirmed, after its name.
absl::string_view Doubt(const v1::Best& best) {
  if (client::LatencyIsConfirmed(best)) return "";
  return best.confirmed() ? ", disturbed" : ", not confirmed";
}

struct ListOptions {
  int limit = 20;
  std::vector<std::string> states;
  std::string owner;
  std::string matching;  // a part of the workload as the list shows it
  bool Selects(const v1::Job& job) const {
    const auto is_its = [&](const std::string& state) {
      return state == client::JobStateName(job.state()) ||
             (state == kUnfinished && !client::HasEnded(job.state()));
    };
    return (states.empty() || std::any_of(states.begin(), states.end(), is_its)) &&
           (owner.empty() || job.owner() == owner) &&
           (matching.empty() || absl::StrContains(DescribeJobAndKind(job), matching));
  }
  bool SelectsAll() const { return states.empty() && owner.empty() && matching.empty(); }
};

// "24 %, 3:10 left"; "" if the job has ended.
std::string ProgressCell(const v1::Job& job) {
  if (client::HasEnded(job.state())) return "";
  const JobProgress progress = ProgressOf(job);
  std::vector<std::string> parts;
  if (progress.share.has_value()) {
    parts.push_back(absl::StrFormat("%.0f %%", 100 * *progress.share));
  }
  if (progress.left < absl::InfiniteDuration()) {
    parts.push_back(absl::StrCat(FormatClock(progress.left), " left"));
  }
  return absl::StrJoin(parts, ", ");
}

absl::Status ListJobs(const Globals& globals, const ListOptions& options) {
  const int limit = options.limit;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->GivenTargetKey());
  // The server does not select jobs. Without a filter, one more job than is printed shows whether
  // there are more.
  const bool filters = !target.empty() || !options.SelectsAll();
  const int asked = limit == 0 || filters ? 0 : limit + 1;
  HONE_ASSIGN_OR_RETURN(std::vector<v1::Job> jobs, session->connection().ListJobs(asked));
  std::erase_if(jobs, [&](const v1::Job& job) {
    return (!target.empty() && job.target() != target) || !options.Selects(job);
  });
  const bool more = limit != 0 && jobs.size() > static_cast<size_t>(limit);
  if (more) jobs.resize(static_cast<size_t>(limit));
  if (globals.json) return PrintJson({{"jobs", ListJson(jobs)}, {"more", more}});
  Table table({Left("job"), Left("state"), Right("trials"), Left("progress"), Right("best GFLOP/s"),
               Right("best latency"), Right("took"), Left("workload"), Left("target"),
               Left("created"), Left("")});
  for (const v1::Job& job : jobs) {
    const double latency = job.has_network() ? job.network().latency_ns()
                           : job.has_best()  ? job.best().latency_ns()
                                             : 0;
    const bool confirmed = job.has_network()
                               ? job.network().confirmed()
                               : job.has_best() && client::LatencyIsConfirmed(job.best());
    table.AddRow(
        {job.id(), client::JobStateName(job.state()),
         client::HasEnded(job.state()) || job.request().max_trials() == 0
             ? absl::StrCat(job.trials())
             : absl::StrCat(job.trials(), "/", job.request().max_trials()),
         ProgressCell(job),
         MarkUnconfirmed(FormatGflops(job.has_best() ? job.best().gflops() : 0), confirmed),
         MarkUnconfirmed(FormatLatency(latency), confirmed),
         FormatClock(absl::Milliseconds(job.wall_ms())), DescribeJobAndKind(job), job.target(),
         FormatTime(job.created_unix_ms()), RemarkOn(job)});
  }
  table.Print(
      FromServer(absl::StrCat("no jobs", target.empty() ? "" : absl::StrCat(" of target ", target),
                              options.SelectsAll() ? "" : " that these filters select")));
  if (more) PrintWrapped(MoreText(limit, "job"));
  return absl::OkStatus();
}

struct ResumeOptions {
  std::string id;
  int64_t trials = 0;
  std::string time;
};

// The sizes of a network that a job tunes together: "N=1 (weight 3), N=8 (weight 1)".
std::string SizesText(const v1::NetworkRequest& request) {
  const auto weight = [](const v1::Network& size) { return size.weight() > 0 ? size.weight() : 1; };
  const bool are_weighted = std::any_of(request.networks().begin(), request.networks().end(),
                                        [&](const v1::Network& size) { return weight(size) != 1; });
  return absl::StrJoin(request.networks(), ", ", [&](std::string* text, const v1::Network& size) {
    absl::StrAppend(text, size.name(),
                    are_weighted ? absl::StrCat(" (weight ", weight(size), ")") : "");
  });
}

void PrintNetwork(const v1::NetworkProgress& network, bool ended) {
  if (network.latency_ns() > 0) {
    absl::PrintF("sum of the tasks: %s", SumText(network));
    if (network.default_latency_ns() > 0) {
      absl::PrintF(", with a speed-up of %s over the default schedules",
                   FormatSpeedUp(network.default_latency_ns(), network.latency_ns()));
    }
    absl::PrintF("\n");
  }
  PrintTasks(network, ended);
}

// Prints the state and the best of a job, or the tasks of its networks. `why`: the reason for the
// state; "" if the caller prints it.
absl::Status PrintJob(const Globals& globals, const v1::Job& job, const std::string& why) {
  if (globals.json) return PrintJson(ToJson(job));
  PrintWrapped(absl::StrCat("job ", job.id(), ": ", client::JobStateName(job.state()), " after ",
                            TrialsText(job), why.empty() ? "" : ": ", why));
  PrintWrapped(JobFacts(job));
  if (job.has_best()) {
    const std::string origin = OriginOfBest(job);
    const bool confirmed = client::LatencyIsConfirmed(job.best());
    const absl::string_view withdrawal = Withdrawal(job);
    PrintWrapped(absl::StrCat(
        "best", origin.empty() ? "" : absl::StrCat(" known, ", origin), Doubt(job.best()),
        withdrawal.empty() ? "" : absl::StrCat(", ", withdrawal), ": ",
        FormatSpeed(job.best().latency_ns(), job.best().gflops(), confirmed), Details(job.best())));
    if (!withdrawal.empty()) {
      PrintWrapped(
          absl::StrCat("it does not count any more: ", job.best().record().quarantine_reason()));
    }
    if (client::BestIsOfAnotherJob(job) && job.has_own_best()) {
      const bool own_confirmed = client::LatencyIsConfirmed(job.own_best());
      PrintWrapped(absl::StrCat(
          "best of this job", Doubt(job.own_best()), ": ",
          FormatSpeed(job.own_best().latency_ns(), job.own_best().gflops(), own_confirmed),
          Details(job.own_best()), WhyOwnIsNotBest(job)));
    }
  }
  for (const v1::Proposer& proposer : job.proposers()) {
    PrintWrapped(absl::StrCat(
        "proposed by ", proposer.name(), ": ", Counted(proposer.accepted(), "schedule"), ", ",
        proposer.measured(), " measured",
        proposer.latency_ns() > 0
            ? absl::StrCat(", the fastest ", FormatLatency(proposer.latency_ns()))
            : ""));
  }
  const bool told = !job.disturbance().empty() && absl::StrContains(why, job.disturbance());
  if (job.disturbed() > 0 && !told) PrintWrapped(DisturbedText(job));
  if (job.request().network().networks_size() > 1) {
    PrintWrapped(absl::StrCat("sizes: ", SizesText(job.request().network())));
  }
  if (job.has_network()) PrintNetwork(job.network(), client::HasEnded(job.state()));
  return absl::OkStatus();
}

absl::Status PrintJob(const Globals& globals, const v1::Job& job) {
  return PrintJob(globals, job,
                  job.error().empty() ? NoteBesideErrors(job) : WithRepeatedOptions(job.error()));
}

// Writes a page about a job of a network, as hone tune --report does.
absl::Status WriteJobReport(Session& session, const v1::Job& job, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  if (!job.has_network()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--report: job ", job.id(), " tunes an operator; reports are for jobs of networks"));
  }
  HONE_RETURN_IF_ERROR(CheckReportPath(path));
  std::vector<v1::LookupBestRequest> queries;
  for (const v1::NetworkTaskProgress& task : job.network().tasks()) {
    queries.push_back(client::BestQuery(task.workload(), job.target(), job.request().tolerance(),
                                        /*nearest=*/false));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<std::optional<v1::Best>> bests,
                        session.connection().LookupBests(queries));
  HONE_ASSIGN_OR_RETURN(const NetworkReport report, MakeReport(job, bests));
  return WriteReport(report, path);
}

absl::Status ShowJob(const Globals& globals, const std::string& id, const std::string& report) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const v1::Job job, session->connection().GetJob(id));
  HONE_RETURN_IF_ERROR(WriteJobReport(*session, job, report));
  if (globals.json || client::HasEnded(job.state())) return PrintJob(globals, job);
  return PrintJob(globals, job,
                  job.wait_reason().empty()
                      ? PhaseOf(job)
                      : "it waits: " + WithRepeatedOptions(job.wait_reason()));
}

absl::Status ResultOf(const FollowedJob& followed) {
  const v1::Job& job = followed.job;
  HONE_RETURN_IF_ERROR(CheckNotCancelled(followed));
  if (job.state() == v1::JOB_STATE_FAILED) {
    return absl::AbortedError(
        absl::StrCat("job ", job.id(), " failed: ", WithRepeatedOptions(job.error())));
  }
  return CheckTasks(job, "hone tune with --only-missing");
}

// Reports the end of a followed job. The search of an operator gets the report of hone tune.
absl::Status Conclude(const Globals& globals, const FollowedJob& followed) {
  const v1::Job& job = followed.job;
  const absl::Status result = ResultOf(followed);
  if (globals.json) return PrintJson(ToJson(job), result);
  const bool is_search = !job.has_network() && !job.is_check() && job.request().revalidate() == 0;
  if (is_search) {
    PrintTuneReport(job, DescribeJob(job), PeakOf(job), /*trace=*/false);
  } else {
    // The result has the error of a failed job.
    const bool failed = job.state() == v1::JOB_STATE_FAILED;
    HONE_RETURN_IF_ERROR(PrintJob(globals, job, failed ? "" : NoteBesideErrors(job)));
  }
  return result;
}

absl::Status WatchJob(const Globals& globals, const std::string& id, const std::string& report) {
  HONE_RETURN_IF_ERROR(CheckReportPath(report));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const v1::Job job, session->connection().GetJob(id));
  // With --json, a line for each state until the last one, which Conclude prints.
  JobObserver stream;
  if (globals.json) {
    stream = [](const v1::Job& now) {
      if (!client::HasEnded(now.state())) PrintJsonLine(ToJson(now));
    };
  }
  HONE_ASSIGN_OR_RETURN(const FollowedJob followed,
                        FollowJob(*session, job, OnInterrupt::kLeave, stream));
  HONE_RETURN_IF_ERROR(WriteJobReport(*session, followed.job, report));
  return Conclude(globals, followed);
}

absl::Status CancelJob(const Globals& globals, const std::string& id, bool now) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const v1::Job before, session->connection().GetJob(id));
  if (client::HasEnded(before.state())) {
    if (!globals.json)
      PrintWrapped(stderr, "there is nothing to cancel: the job has already ended");
    return PrintJob(globals, before);
  }
  HONE_ASSIGN_OR_RETURN(const v1::Job job, session->connection().CancelJob(id, !now));
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
  HONE_ASSIGN_OR_RETURN(const v1::Job job,
                        session->connection().ResumeJob(options.id, options.trials, time_ms));
  HONE_RETURN_IF_ERROR(PrintJob(globals, job));
  PrintWrapped(stderr, absl::StrCat("the job continues; ",
                                    SuggestedCommand("jobs watch " + job.id()), " follows it"));
  return absl::OkStatus();
}

struct ProposeOptions {
  std::string id;
  std::vector<std::string> files;
  std::string proposer = "command";
};

Json VerdictJson(const std::string& file, const v1::ProposalVerdict& verdict) {
  const bool accepted = verdict.trial() >= 0;
  Json json = {{"file", file}, {"trial", accepted ? Json(verdict.trial()) : Json(nullptr)}};
  json.update(FieldsJson(verdict, {"refusal", "why"}));
  return json;
}

absl::Status ProposeSchedules(const Globals& globals, const ProposeOptions& options) {
  v1::ProposeRequest request;
  request.set_job(options.id);
  request.set_proposer(options.proposer);
  for (const std::string& file : options.files) {
    HONE_ASSIGN_OR_RETURN(*request.add_traces(), ReadTextArgument(file));
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const v1::ProposeResponse answer, session->connection().Propose(request));
  Json verdicts = Json::array();
  Table table({Left("schedule"), Right("trial"), Text("why it is refused")});
  bool any = false;
  for (int i = 0; i < answer.verdicts_size(); ++i) {
    const v1::ProposalVerdict& verdict = answer.verdicts(i);
    any |= verdict.trial() >= 0;
    verdicts.push_back(VerdictJson(options.files[i], verdict));
    table.AddRow({options.files[i], verdict.trial() >= 0 ? absl::StrCat(verdict.trial()) : "-",
                  verdict.why()});
  }
  const absl::Status status =
      any ? absl::OkStatus()
          : absl::InvalidArgumentError(absl::StrCat("job ", options.id, " accepts none of them"));
  if (globals.json) {
    return PrintJson({{"job", options.id},
                      {"verdicts", std::move(verdicts)},
                      {"waiting_count", answer.waiting()}},
                     status);
  }
  table.Print();
  return status;
}

}  // namespace

void AddJobs(Command& app, Globals& globals) {
  Command& jobs = app.AddCommand(
      "jobs", "List, show, watch, cancel and resume tuning jobs, and propose schedules for them");
  jobs.RequireCommand(1, 1);
  jobs.Footer(
      "Examples:\n"
      "  hone jobs list --server hone.internal:7070\n"
      "  hone jobs watch 4711 --server hone.internal:7070\n"
      "  hone jobs resume 4711 --trials 2000");

  Command& list = jobs.AddCommand("list", "List the jobs of the server, newest first");
  auto filters = std::make_shared<ListOptions>();
  list.Add("--limit", filters->limit, "List at most this many; 0 for all (default 20)",
           {Range(0, 1'000'000'000)});
  list.Add("--state", filters->states,
           "Only jobs in this state; may be repeated: unfinished (the first three), pending, "
           "running, confirming, done, cancelled or failed",
           {OneWordPerUse(), OneOf({kUnfinished, "pending", "running", "confirming", "done",
                                    "cancelled", "failed"})});
  list.Add("--owner", filters->owner, "Only jobs of this caller, by the name of its token",
           {NotEmpty()});
  list.Add("--matching", filters->matching,
           "Only jobs whose workload, as the list shows it, contains this text", {NotEmpty()});
  Complete(list, globals,
           "With --target, only the jobs of that target are listed. A figure marked with ~ is not "
           "confirmed and may change.\n\n"
           "Examples:\n"
           "  hone jobs list\n"
           "  hone jobs list --state unfinished\n"
           "  hone jobs list --matching matmul --state failed --limit 0 --json",
           [&globals, filters] { return ListJobs(globals, *filters); });

  const auto add_id = [](Command& command, std::string& id) {
    command.Add("JOB", id, "The job's number, as hone jobs list prints it", {Required()});
  };
  auto id = std::make_shared<std::string>();
  Command& show =
      jobs.AddCommand("show", "Print the state of a job, and of each task of a network");
  add_id(show, *id);
  auto report = std::make_shared<std::string>();
  const auto add_report = [report](Command& command) {
    command.Add("--report", *report, "FILE.html to write about the tasks of a network",
                {NotEmpty()});
  };
  add_report(show);
  CompleteWithoutTarget(
      show, globals,
      "The tasks of a network have jobs of their own: 4711.3 tunes task 3 of job 4711.\n\n"
      "Examples:\n"
      "  hone jobs show 4711 --server hone.internal:7070\n"
      "  hone jobs show 4711 --report resnet50.html\n"
      "  hone jobs show 4711.3 --json",
      [&globals, id, report] { return ShowJob(globals, *id, *report); });

  Command& watch =
      jobs.AddCommand("watch", "Follow a job to its end; Ctrl-C stops watching, not the job");
  add_id(watch, *id);
  add_report(watch);
  CompleteWithoutTarget(watch, globals,
                        "With --json, it prints an object on one line for each change, at most a "
                        "few per second; the last one is that of the end.\n\n"
                        "Examples:\n"
                        "  hone jobs watch 4711 --server hone.internal:7070\n"
                        "  hone jobs watch 4711 --json | jq --unbuffered .progress",
                        [&globals, id, report] { return WatchJob(globals, *id, *report); });

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

  Command& propose = jobs.AddCommand(
      "propose", "Propose schedules for the search of a job, which measures them, too");
  auto proposed = std::make_shared<ProposeOptions>();
  add_id(propose, proposed->id);
  propose.Add("FILE", proposed->files,
              "FILE.trace of the job's workload in which every sampling is decided; at most 64",
              {Required()});
  propose.Add("--proposer", proposed->proposer,
              "Who proposes, as the records name it (default \"command\")", {NotEmpty()});
  CompleteWithoutTarget(
      propose, globals,
      "Half of each batch of the job is for proposals. They count against its trials. hone records "
      "query --proposer NAME lists what was measured. A task of a network has a job of its own, "
      "such as 4711.3. The exit code is 2 if the job accepts none of them.\n\n"
      "Examples:\n"
      "  hone jobs propose 4711 mine.trace --server hone.internal:7070\n"
      "  hone jobs propose 4711.3 tiles-*.trace --proposer sweep --json",
      [&globals, proposed] { return ProposeSchedules(globals, *proposed); });

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

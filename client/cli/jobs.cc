#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/json_output.h"
#include "client/cli/run_job.h"
#include "client/cli/session.h"
#include "client/cli/table.h"
#include "client/cli/workload_argument.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

absl::Status ListJobs(const Globals& globals, int limit) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(globals, /*with_worker=*/false));
  HONE_ASSIGN_OR_RETURN(const std::vector<client::Job> jobs, session->connection().ListJobs(limit));
  if (globals.json) {
    Json list = Json::array();
    for (const client::Job& job : jobs) list.push_back(ToJson(job));
    PrintJson({{"jobs", std::move(list)}});
    return absl::OkStatus();
  }
  Table table({{"job", Table::Align::kLeft},
               {"state", Table::Align::kLeft},
               {"trials"},
               {"best GFLOP/s"},
               {"best latency"},
               {"took"},
               {"workload", Table::Align::kLeft},
               {"target", Table::Align::kLeft},
               {"created", Table::Align::kLeft},
               {"", Table::Align::kLeft}});
  for (const client::Job& job : jobs) {
    table.AddRow({job.id, std::string(client::JobStateName(job.state)), absl::StrCat(job.trials),
                  job.best.has_value() ? FormatGflops(job.best->gflops) : "-",
                  job.best.has_value() ? FormatLatency(job.best->record.result.latency_ns) : "-",
                  FormatClock(absl::Milliseconds(job.wall_ms)), DescribeWorkloadText(job.workload),
                  job.target, FormatTime(job.created_unix_ms),
                  !job.error.empty()  ? job.error
                  : job.phase.empty() ? job.note
                                      : job.phase});
  }
  if (table.empty()) {
    std::printf("no jobs\n");
  } else {
    std::fputs(table.ToText().c_str(), stdout);
  }
  return absl::OkStatus();
}

struct ResumeOptions {
  std::string id;
  int64_t trials = 0;
  std::string time;
};

// A job in a line, for a person.
void PrintJob(const Globals& globals, const client::Job& job) {
  if (globals.json) return PrintJson(ToJson(job));
  const std::string& why = !job.error.empty() ? job.error : job.note;
  std::printf("job %s: %s after %lld trials%s%s\n", job.id.c_str(),
              std::string(client::JobStateName(job.state)).c_str(),
              static_cast<long long>(job.trials), why.empty() ? "" : ": ", why.c_str());
  if (job.best.has_value()) {
    std::printf("best: %s, %s GFLOP/s\n", FormatLatency(job.best->record.result.latency_ns).c_str(),
                FormatGflops(job.best->gflops).c_str());
  }
}

// The last word on a job that was followed.
absl::Status Conclude(const Globals& globals, const std::string& id,
                      const absl::StatusOr<client::Job>& job) {
  if (absl::IsCancelled(job.status())) {
    std::fprintf(stderr, "job %s goes on; hone jobs cancel %s ends it\n", id.c_str(), id.c_str());
    return absl::OkStatus();
  }
  HONE_RETURN_IF_ERROR(job.status());
  PrintJob(globals, *job);
  if (job->state == client::JobState::kFailed) {
    return absl::AbortedError(absl::StrCat("job ", id, " failed: ", job->error));
  }
  return absl::OkStatus();
}

absl::Status WatchJob(const Globals& globals, const std::string& id) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(globals, /*with_worker=*/false));
  HONE_ASSIGN_OR_RETURN(const client::Job job, session->connection().GetJob(id));
  return Conclude(globals, id, FollowJob(*session, job, OnInterrupt::kLeave));
}

absl::Status CancelJob(const Globals& globals, const std::string& id, bool now) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(globals, /*with_worker=*/false));
  HONE_ASSIGN_OR_RETURN(const client::Job job, session->connection().CancelJob(id, !now));
  PrintJob(globals, job);
  return absl::OkStatus();
}

absl::Status ResumeJob(const Globals& globals, const ResumeOptions& options) {
  int64_t time_ms = 0;
  if (!options.time.empty()) {
    HONE_ASSIGN_OR_RETURN(const absl::Duration time, ParseDuration(options.time));
    time_ms = absl::ToInt64Milliseconds(time);
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(globals, /*with_worker=*/false));
  HONE_ASSIGN_OR_RETURN(const client::Job job,
                        session->connection().ResumeJob(options.id, options.trials, time_ms));
  if (session->private_server() == nullptr) {
    PrintJob(globals, job);
    return absl::OkStatus();
  }
  // A private server ends with us, and cancels what nobody watches.
  HONE_RETURN_IF_ERROR(session->StartWorker());
  return Conclude(globals, options.id, FollowJob(*session, job, OnInterrupt::kConfirm));
}

}  // namespace

void AddJobs(CLI::App& app, Globals& globals, Action& action) {
  CLI::App* jobs = app.add_subcommand("jobs", "List, watch, cancel and resume tuning jobs");
  jobs->require_subcommand(1);
  jobs->footer(
      "Examples:\n"
      "  hone jobs list --server hone.internal:7070\n"
      "  hone jobs watch 4711 --server hone.internal:7070\n"
      "  hone jobs resume 4711 --trials 2000");

  CLI::App* list = jobs->add_subcommand("list", "List the jobs of the server, newest first");
  auto limit = std::make_shared<int>(20);
  list->add_option("--limit", *limit, "At most this many; 0 for all (default 20)")
      ->check(CLI::Range(0, 1'000'000'000));
  AddGlobals(*list, globals);
  list->footer(
      "Examples:\n"
      "  hone jobs list\n"
      "  hone jobs list --limit 0 --json | jq '.jobs[] | select(.state == \"failed\")'");
  list->callback([&globals, &action, limit] {
    action = [&globals, limit] { return ListJobs(globals, *limit); };
  });

  const auto add_id = [](CLI::App* command, std::string& id) {
    command->add_option("JOB", id, "The job's number, as hone jobs list prints it")->required();
  };
  auto id = std::make_shared<std::string>();
  CLI::App* watch =
      jobs->add_subcommand("watch", "Follow a job to its end; Ctrl-C leaves it alone");
  add_id(watch, *id);
  AddGlobals(*watch, globals);
  watch->footer("Examples:\n  hone jobs watch 4711 --server hone.internal:7070");
  watch->callback(
      [&globals, &action, id] { action = [&globals, id] { return WatchJob(globals, *id); }; });

  CLI::App* cancel = jobs->add_subcommand("cancel", "End a job; what it measured is kept");
  auto now = std::make_shared<bool>(false);
  add_id(cancel, *id);
  cancel->add_flag("--now", *now, "Do not confirm the best candidates first");
  AddGlobals(*cancel, globals);
  cancel->footer("Examples:\n  hone jobs cancel 4711 --server hone.internal:7070");
  cancel->callback([&globals, &action, id, now] {
    action = [&globals, id, now] { return CancelJob(globals, *id, *now); };
  });

  CLI::App* resume =
      jobs->add_subcommand("resume", "Start a cancelled or failed job again where it stopped");
  auto options = std::make_shared<ResumeOptions>();
  add_id(resume, options->id);
  resume->add_option("--trials", options->trials, "The new limit of trials, all told")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000'000}));
  resume->add_option("--time", options->time, "The new limit of time, all told: 60s, 10m, 1h30m")
      ->check(NotEmpty());
  AddGlobals(*resume, globals);
  resume->footer("Examples:\n  hone jobs resume 4711 --trials 2000 --server hone.internal:7070");
  resume->callback([&globals, &action, options] {
    action = [&globals, options] { return ResumeJob(globals, *options); };
  });
}

}  // namespace hone::cli

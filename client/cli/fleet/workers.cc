#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/fleet/worker_text.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/session.h"
#include "client/cli/suggested_command.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

absl::Status ListWorkers(const Globals& globals) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->GivenTargetKey());
  HONE_ASSIGN_OR_RETURN(std::vector<v1::WorkerInfo> workers, session->connection().ListWorkers());
  std::erase_if(workers, [&](const v1::WorkerInfo& worker) {
    return !target.empty() && worker.target() != target;
  });
  if (globals.json) return PrintJson({{"workers", ListJson(workers)}});
  Table table({Left("worker"), Left("host"), Left("state"), Left("does"), Right("leases"),
               Right("peak GFLOP/s"), Left("target"), Left("last seen"), Left("last error")});
  for (const v1::WorkerInfo& worker : workers) {
    table.AddRow(
        {worker.id(), worker.host(), WorkerState(worker),
         worker.can_build() && worker.can_run() ? "build, run"
         : worker.can_build()                   ? "build"
         : worker.can_run()                     ? "run"
                                                : "-",
         absl::StrCat(worker.leases()), FormatGflops(worker.peak_gflops()), worker.target(),
         worker.last_seen_unix_ms() == 0 ? "-" : FormatTime(worker.last_seen_unix_ms()),
         WithRepeatedOptions(worker.flagged().empty() ? worker.last_error() : worker.flagged())});
  }
  table.Print(FromServer(absl::StrCat(
      "no workers", target.empty() ? "" : absl::StrCat(" of target ", target), "; ",
      globals.server.empty() ? "the private server starts one of this machine, and only for tuning"
                             : "start one with: " + HowToStartWorker(globals))));
  const bool all_away = std::none_of(workers.begin(), workers.end(),
                                     [](const v1::WorkerInfo& w) { return w.connected(); });
  if (all_away && !workers.empty() && !globals.server.empty()) {
    PrintWrapped(
        "\nno worker is connected; those that still run connect again within a minute, unless an "
        "administrator has removed them, and the others must be started");
  }
  return absl::OkStatus();
}

// The number of jobs among which unfinished ones are looked for.
constexpr int kJobsToSearch = 100;

// Says which jobs wait because the worker was drained. Says nothing if the server does not answer.
void WarnOfWaits(client::Connection& connection, const std::string& drained) {
  const absl::StatusOr<std::vector<v1::WorkerInfo>> workers = connection.ListWorkers();
  const absl::StatusOr<std::vector<v1::Job>> jobs = connection.ListJobs(kJobsToSearch);
  if (!workers.ok() || !jobs.ok()) return;
  const std::string text = WaitWithout(drained, *workers, *jobs);
  if (!text.empty()) PrintWrapped(stderr, absl::StrCat("warning: ", text));
}

absl::Status DrainWorker(const Globals& globals, const std::string& name, bool resume) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const v1::WorkerInfo worker,
                        session->connection().DrainWorker(name, resume));
  if (!resume) WarnOfWaits(session->connection(), name);
  if (globals.json) return PrintJson(ToJson(worker));
  if (resume) {
    PrintWrapped(ResumedText(worker));
  } else {
    PrintWrapped(worker.leases() == 0
                     ? absl::StrCat(name, " gets no more work")
                     : absl::StrCat(name, " finishes its work, ", Counted(worker.leases(), "lease"),
                                    ", and gets no more"));
  }
  return absl::OkStatus();
}

absl::Status RemoveWorker(const Globals& globals, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const int requeued, session->connection().RemoveWorker(name));
  if (globals.json) return PrintJson({{"worker", name}, {"requeued", requeued}});
  PrintWrapped(absl::StrCat(name, " was removed; ", Counted(requeued, "lease"), " of it ",
                            requeued == 1 ? "was" : "were", " requeued"));
  return absl::OkStatus();
}

// Adds a subcommand that acts on one worker.
void AddOnWorker(Command& workers, Globals& globals, const std::string& name, const char* what,
                 absl::Status (*run)(const Globals& globals, const std::string& worker)) {
  Command& command = workers.AddCommand(name, what);
  auto worker = std::make_shared<std::string>();
  command.Add("worker", *worker, "Name of the worker, as in hone workers list", {Required()});
  CompleteWithoutTarget(
      command, globals,
      absl::StrCat("Examples:\n  hone workers ", name, " pi-07 --server hone.internal:7070"),
      [&globals, worker, run] { return run(globals, *worker); });
}

}  // namespace

void AddWorkers(Command& app, Globals& globals) {
  Command& workers = app.AddCommand("workers", "List, drain, resume and remove workers");
  workers.RequireCommand(1, 1);
  workers.Footer(
      "Examples:\n"
      "  hone workers list --server hone.internal:7070\n"
      "  hone workers drain pi-07 --server hone.internal:7070");
  Command& command = workers.AddCommand("list", "List the workers of the server");
  Complete(command, globals,
           "With --target, only the workers of that target are listed.\n\n"
           "Examples:\n"
           "  hone workers list --server localhost:7070\n"
           "  hone workers list --server localhost:7070 --json | jq '.workers[].target'",
           [&globals] { return ListWorkers(globals); });
  AddOnWorker(workers, globals, "drain", "Let a worker finish its leases, and give it no more",
              [](const Globals& with, const std::string& worker) {
                return DrainWorker(with, worker, /*resume=*/false);
              });
  AddOnWorker(workers, globals, "resume",
              "Give work again to a worker that was drained, removed or refused",
              [](const Globals& with, const std::string& worker) {
                return DrainWorker(with, worker, /*resume=*/true);
              });
  AddOnWorker(workers, globals, "remove", "Remove a worker, and reject it until it is resumed",
              RemoveWorker);
}

}  // namespace hone::cli

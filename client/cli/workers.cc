#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/json_output.h"
#include "client/cli/session.h"
#include "client/cli/table.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

std::string StateOf(const client::Worker& worker) {
  if (!worker.flagged.empty()) return worker.connected ? "refused" : "refused, away";
  if (worker.draining) return worker.connected ? "draining" : "drained, away";
  return worker.connected ? "connected" : "away";
}

absl::Status ListWorkers(const Globals& globals) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(globals, /*with_worker=*/false));
  HONE_ASSIGN_OR_RETURN(const std::vector<client::Worker> workers,
                        session->connection().ListWorkers());
  if (globals.json) {
    Json list = Json::array();
    for (const client::Worker& worker : workers) list.push_back(ToJson(worker));
    PrintJson({{"workers", std::move(list)}});
    return absl::OkStatus();
  }
  Table table({{"worker", Table::Align::kLeft},
               {"host", Table::Align::kLeft},
               {"state", Table::Align::kLeft},
               {"does", Table::Align::kLeft},
               {"leases"},
               {"peak GFLOP/s"},
               {"target", Table::Align::kLeft},
               {"last seen", Table::Align::kLeft},
               {"last error", Table::Align::kLeft}});
  for (const client::Worker& worker : workers) {
    table.AddRow({worker.id, worker.host, StateOf(worker),
                  worker.can_build && worker.can_run ? "build, run"
                  : worker.can_build                 ? "build"
                  : worker.can_run                   ? "run"
                                                     : "-",
                  absl::StrCat(worker.leases), FormatGflops(worker.peak_gflops), worker.target,
                  worker.last_seen_unix_ms == 0 ? "-" : FormatTime(worker.last_seen_unix_ms),
                  worker.flagged.empty() ? worker.last_error : worker.flagged});
  }
  if (!table.empty()) {
    std::fputs(table.ToText().c_str(), stdout);
  } else if (globals.server.empty()) {
    std::printf("no workers: the private server starts one only while something is tuned\n");
  } else {
    std::printf("no workers; start one with: hone-worker --server %s\n", globals.server.c_str());
  }
  return absl::OkStatus();
}

absl::Status DrainWorker(const Globals& globals, const std::string& name, bool resume) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(globals, /*with_worker=*/false));
  HONE_ASSIGN_OR_RETURN(const client::Worker worker,
                        session->connection().DrainWorker(name, resume));
  if (globals.json) {
    PrintJson(ToJson(worker));
  } else if (resume) {
    std::printf("%s gets work again\n", name.c_str());
  } else {
    std::printf("%s finishes what it has begun (%d leases) and gets no more\n", name.c_str(),
                worker.leases);
  }
  return absl::OkStatus();
}

absl::Status RemoveWorker(const Globals& globals, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(globals, /*with_worker=*/false));
  HONE_ASSIGN_OR_RETURN(const int requeued, session->connection().RemoveWorker(name));
  if (globals.json) {
    PrintJson({{"id", name}, {"requeued", requeued}});
  } else {
    std::printf("%s is forgotten; %d of its leases went back to the queue\n", name.c_str(),
                requeued);
  }
  return absl::OkStatus();
}

// A command on one worker.
void AddOnWorker(CLI::App& workers, Globals& globals, Action& action, const char* name,
                 const char* what, const char* example,
                 absl::Status (*run)(const Globals& globals, const std::string& worker)) {
  CLI::App* command = workers.add_subcommand(name, what);
  auto worker = std::make_shared<std::string>();
  command->add_option("worker", *worker, "Its name, as in hone workers list")->required();
  AddGlobals(*command, globals);
  command->footer(example);
  command->callback([&globals, &action, worker, run] {
    action = [&globals, worker, run] { return run(globals, *worker); };
  });
}

}  // namespace

void AddWorkers(CLI::App& app, Globals& globals, Action& action) {
  CLI::App* workers = app.add_subcommand("workers", "Look at the machines that build and measure");
  workers->require_subcommand(1);
  workers->footer(
      "Examples:\n"
      "  hone workers list --server hone.internal:7070\n"
      "  hone workers drain pi-07 --server hone.internal:7070");
  CLI::App* command = workers->add_subcommand("list", "List the workers of the server");
  AddGlobals(*command, globals);
  command->footer(
      "Examples:\n"
      "  hone workers list --server localhost:7070\n"
      "  hone workers list --server localhost:7070 --json | jq '.workers[].target'");
  command->callback([&globals, &action] { action = [&globals] { return ListWorkers(globals); }; });
  AddOnWorker(*workers, globals, action, "drain",
              "Let a worker finish what it has begun and give it no more",
              "Examples:\n  hone workers drain pi-07 --server hone.internal:7070",
              [](const Globals& with, const std::string& worker) {
                return DrainWorker(with, worker, /*resume=*/false);
              });
  AddOnWorker(*workers, globals, action, "resume",
              "Give a worker work again that was drained, removed or refused",
              "Examples:\n  hone workers resume pi-07 --server hone.internal:7070",
              [](const Globals& with, const std::string& worker) {
                return DrainWorker(with, worker, /*resume=*/true);
              });
  AddOnWorker(*workers, globals, action, "remove",
              "Forget a worker and let it in no more until it is resumed",
              "Examples:\n  hone workers remove pi-07 --server hone.internal:7070", RemoveWorker);
}

}  // namespace hone::cli

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
    table.AddRow({worker.id, worker.host, worker.connected ? "connected" : "away",
                  worker.can_build && worker.can_run ? "build, run"
                  : worker.can_build                 ? "build"
                  : worker.can_run                   ? "run"
                                                     : "-",
                  absl::StrCat(worker.leases), FormatGflops(worker.peak_gflops), worker.target,
                  FormatTime(worker.last_seen_unix_ms), worker.last_error});
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

}  // namespace

void AddWorkers(CLI::App& app, Globals& globals, Action& action) {
  CLI::App* workers = app.add_subcommand("workers", "Look at the machines that build and measure");
  workers->require_subcommand(1);
  CLI::App* command = workers->add_subcommand("list", "List the workers of the server");
  AddGlobals(*command, globals);
  command->footer(
      "Examples:\n"
      "  hone workers list --server localhost:7070\n"
      "  hone workers list --server localhost:7070 --json | jq '.workers[].target'");
  command->callback([&globals, &action] { action = [&globals] { return ListWorkers(globals); }; });
}

}  // namespace hone::cli

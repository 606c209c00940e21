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

}  // namespace

void AddJobs(CLI::App& app, Globals& globals, Action& action) {
  CLI::App* jobs = app.add_subcommand("jobs", "Look at tuning jobs");
  jobs->require_subcommand(1);
  CLI::App* command = jobs->add_subcommand("list", "List the jobs of the server, newest first");
  auto limit = std::make_shared<int>(20);
  command->add_option("--limit", *limit, "At most this many; 0 for all (default 20)")
      ->check(CLI::Range(0, 1'000'000'000));
  AddGlobals(*command, globals);
  command->footer(
      "Examples:\n"
      "  hone jobs list\n"
      "  hone jobs list --limit 0 --json | jq '.jobs[] | select(.state == \"failed\")'");
  command->callback([&globals, &action, limit] {
    action = [&globals, limit] { return ListJobs(globals, *limit); };
  });
}

}  // namespace hone::cli

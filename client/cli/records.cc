#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/json_output.h"
#include "client/cli/session.h"
#include "client/cli/table.h"
#include "client/cli/workload_argument.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

struct RecordsOptions {
  std::vector<std::string> words;
  std::string op;
  std::string job;
  std::string since;
  bool best = false;
  int limit = 50;
};

absl::Status QueryRecords(const Globals& globals, const RecordsOptions& options) {
  client::RecordFilter filter;
  filter.op = options.op;
  filter.best_only = options.best;
  if (!options.words.empty()) {
    HONE_ASSIGN_OR_RETURN(const WorkloadArgument argument, ReadWorkloadArgument(options.words));
    filter.workload_digest = argument.workload.StructuralDigest().ToHex();
  }
  if (!options.since.empty()) {
    HONE_ASSIGN_OR_RETURN(const absl::Duration age, ParseDuration(options.since));
    filter.since_unix_ms = absl::ToUnixMillis(absl::Now() - age);
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                        Session::Open(globals, /*with_worker=*/false));
  if (globals.target_given) {
    HONE_ASSIGN_OR_RETURN(filter.target, session->TargetKey());
  }
  // The server knows nothing of jobs in this question, so all of them are read and the others left
  // out here.
  HONE_ASSIGN_OR_RETURN(
      std::vector<record::Record> records,
      session->connection().ListRecords(filter, options.job.empty() ? options.limit : 0));
  if (!options.job.empty()) {
    HONE_RETURN_IF_ERROR(session->connection().GetJob(options.job).status());  // there is one
    std::erase_if(records, [&](const record::Record& r) { return r.job_id != options.job; });
    if (options.limit > 0 && records.size() > static_cast<size_t>(options.limit))
      records.resize(options.limit);
  }
  if (globals.json) {
    Json list = Json::array();
    for (const record::Record& record : records) list.push_back(ToJson(record));
    PrintJson({{"records", std::move(list)}});
    return absl::OkStatus();
  }
  Table table({{"id"},
               {"operator", Table::Align::kLeft},
               {"workload", Table::Align::kLeft},
               {"target", Table::Align::kLeft},
               {"policy", Table::Align::kLeft},
               {"outcome", Table::Align::kLeft},
               {"latency"},
               {"trial"},
               {"job", Table::Align::kLeft},
               {"when", Table::Align::kLeft},
               {"detail", Table::Align::kLeft}});
  for (const record::Record& record : records) {
    std::string detail =
        record.is_default ? "the untiled default" : record.result.detail.substr(0, 60);
    if (record.quarantined) detail = absl::StrCat("quarantined ", detail);
    for (char& c : detail) {
      if (c == '\n') c = ' ';
    }
    table.AddRow({absl::StrCat(record.id), record.op, record.workload_digest.substr(0, 8),
                  record.target, record.policy.Key(),
                  std::string(record::OutcomeName(record.result.outcome)),
                  FormatLatency(record.result.latency_ns), absl::StrCat(record.trial),
                  record.job_id, FormatTime(record.created_unix_ms), detail});
  }
  if (table.empty()) {
    std::printf("no records\n");
  } else {
    std::fputs(table.ToText().c_str(), stdout);
  }
  return absl::OkStatus();
}

}  // namespace

void AddRecords(CLI::App& app, Globals& globals, Action& action) {
  CLI::App* records = app.add_subcommand("records", "Look at what was measured");
  records->require_subcommand(1);
  CLI::App* command = records->add_subcommand("query", "List measurements, failed ones too");
  auto options = std::make_shared<RecordsOptions>();
  AddWorkloadWords(*command, options->words, /*required=*/false);
  command->add_option("--op", options->op, "Only of workloads with this name");
  command->add_option("--job", options->job, "Only of this job");
  command->add_option("--since", options->since, "Only of the last 2h, 30d, …");
  command->add_flag("--best", options->best, "Only the published bests");
  command->add_option("--limit", options->limit, "At most this many; 0 for all (default 50)")
      ->check(CLI::Range(0, 1'000'000'000));
  AddGlobals(*command, globals);
  command->footer(
      "Examples:\n"
      "  hone records query --op conv2d --best\n"
      "  hone records query matmul m=1024 n=1024 k=1024 --limit 0 --json | jq "
      "'.records[].latency_ns'");
  command->callback([&globals, &action, options] {
    action = [&globals, options] { return QueryRecords(globals, *options); };
  });
}

}  // namespace hone::cli

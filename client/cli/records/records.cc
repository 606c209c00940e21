#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/command.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/policy_text.h"
#include "client/cli/records/record_selection.h"
#include "client/cli/session.h"
#include "client/cli/suggested_command.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

constexpr int kPage = 200;
constexpr int kDetailColumns = 60;

struct RecordsOptions {
  RecordSelection which;
  bool csv = false;
  int limit = 50;
};

// The first words of a text, with a mark if there are more.
std::string FirstWords(const std::string& text) {
  const std::string words = Shortened(text, kDetailColumns);
  return words.size() == text.size() ? words : absl::StrCat(words, " …");
}

std::string Detail(const record::Record& record) {
  std::string detail = FirstWords(record.result.detail);
  if (record.result.processes > 1) {
    detail = absl::StrCat("median of ", record.result.processes, " processes");
  }
  if (record.is_default) {
    detail = detail.empty() ? "the untiled default" : absl::StrCat("the untiled default: ", detail);
  }
  if (!record.proposer.empty()) {
    detail = absl::StrCat("proposed by ", record.proposer, detail.empty() ? "" : ": ", detail);
  }
  if (record.quarantined) {
    detail = record.quarantine_reason.empty()
                 ? absl::StrCat("quarantined ", detail)
                 : absl::StrCat("quarantined: ", FirstWords(record.quarantine_reason),
                                detail.empty() ? "" : "; ", detail);
  }
  std::replace(detail.begin(), detail.end(), '\n', ' ');
  return detail;
}

std::string TrialText(const record::Record& record, absl::string_view none) {
  return record.trial == record::kNoTrial ? std::string(none) : absl::StrCat(record.trial);
}

void PrintTable(const std::vector<record::Record>& records) {
  Table table({Right("record"), Left("operator"), Left("digest"), Left("target"), Left("purpose"),
               Left("outcome"), Right("latency"), Right("trial"), Left("job"), Left("when"),
               Left("detail")});
  for (const record::Record& record : records) {
    table.AddRow({absl::StrCat(record.id), record.op, record.workload_digest.substr(0, 8),
                  record.target, PolicyText(record.policy),
                  std::string(record::OutcomeName(record.result.outcome)),
                  FormatLatency(record::SteadyLatencyNs(record.result)), TrialText(record, "-"),
                  record.job_id, FormatTime(record.created_unix_ms), Detail(record)});
  }
  table.Print(FromServer("no records"));
}

// A field of a CSV file (RFC 4180).
std::string Quoted(absl::string_view text) {
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// All digits; "" for NaN.
std::string Exactly(double value) {
  return std::isnan(value) ? "" : absl::StrFormat("%.17g", value);
}

void PrintCsvLine(const record::Record& record) {
  const record::MeasureResult& result = record.result;
  const std::vector<std::string> fields = {absl::StrCat(record.id),
                                           Quoted(record.op),
                                           record.workload_digest,
                                           Quoted(record.target),
                                           record.policy.Key(),
                                           std::string(record::OutcomeName(result.outcome)),
                                           Exactly(record::SteadyLatencyNs(result)),
                                           Exactly(result.dispersion),
                                           Exactly(result.max_error),
                                           Exactly(result.facts.compile_ms),
                                           record.candidate.space_digest,
                                           Quoted(record.job_id),
                                           TrialText(record, ""),
                                           absl::StrCat(record.created_unix_ms),
                                           absl::StrCat(record.is_default ? 1 : 0),
                                           absl::StrCat(record.quarantined ? 1 : 0),
                                           Quoted(record.quarantine_reason),
                                           Quoted(result.detail),
                                           Exactly(result.latency_ns),
                                           record.proposer};
  absl::PrintF("%s\n", absl::StrJoin(fields, ","));
}

// Prints one page at a time, because millions of records may not fit into memory.
absl::Status PrintCsv(client::Connection& connection, const v1::ListRecordsRequest& filter,
                      int limit) {
  absl::PrintF(
      "record,operator,workload_digest,target,policy,outcome,latency_ns,dispersion,max_error,"
      "compile_ms,space_digest,job,trial,measured_unix_ms,is_default,quarantined,"
      "quarantine_reason,detail,raw_latency_ns,proposer\n");
  std::string token;
  int64_t printed = 0;
  do {
    const int page =
        limit == 0 ? kPage : static_cast<int>(std::min<int64_t>(kPage, limit - printed));
    HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> records,
                          connection.RecordPage(filter, page, token));
    for (const record::Record& record : records) PrintCsvLine(record);
    printed += static_cast<int64_t>(records.size());
  } while (!token.empty() && (limit == 0 || printed < limit));
  return absl::OkStatus();
}

absl::Status QueryRecords(const Globals& globals, const RecordsOptions& options) {
  if (options.csv && globals.json) {
    return absl::InvalidArgumentError("--csv and --json cannot be used together");
  }
  HONE_ASSIGN_OR_RETURN(v1::ListRecordsRequest filter, ReadSelection(options.which));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_RETURN_IF_ERROR(CompleteSelection(*session, filter));
  client::Connection& connection = session->connection();
  if (options.csv) return PrintCsv(connection, filter, options.limit);
  filter.set_newest_first(true);
  // Ask for one more record than is printed, to find out whether there are more.
  HONE_ASSIGN_OR_RETURN(std::vector<record::Record> records,
                        connection.ListRecords(filter, options.limit == 0 ? 0 : options.limit + 1));
  const bool more = options.limit != 0 && records.size() > static_cast<size_t>(options.limit);
  if (more) records.pop_back();
  if (globals.json) {
    return PrintJson({{"records", ListJson(records)}, {"more", more}});
  }
  PrintTable(records);
  if (more) {
    PrintWrapped(MoreText(options.limit, "record"));
  }
  return absl::OkStatus();
}

}  // namespace

void AddRecords(Command& app, Globals& globals) {
  Command& records =
      app.AddCommand("records", "List, export, import, back up and compact measurements");
  records.RequireCommand(1, 1);
  records.Footer(
      "Examples:\n"
      "  hone records query --op conv2d --best\n"
      "  hone records export --since 30d -o records.jsonl\n"
      "  hone records compact --keep 90d --dry-run");
  Command& command = records.AddCommand("query", "List measurements, including failed ones");
  auto options = std::make_shared<RecordsOptions>();
  AddSelection(command, options->which);
  command.Add("--limit", options->limit, "List at most this many; 0 for all (default 50)",
              {Range(0, 1'000'000'000)});
  command.AddFlag("--csv", options->csv, "Print comma-separated values, with a header line");
  Complete(
      command, globals,
      "The newest records come first; with --csv, the oldest. If no record matches, the list is "
      "empty and the exit code is 0. Latencies are scaled to the "
      "speed of the machine when its worker registered, as in all commands; raw_latency_ns of "
      "--json and --csv is as measured. The purpose of a measurement is the search or the "
      "confirmation of a job. The policy of --json and --csv is the purpose (screen or confirm), "
      "the state of the caches, and the number of threads (0: all cores), as in confirm/warm/0.\n\n"
      "Examples:\n"
      "  hone records query --op conv2d --best\n"
      "  hone records query --since 30d --outcome crash --csv --limit 0 > crashes.csv\n"
      "  hone records query matmul m=1024 n=1024 k=1024 --limit 0 --json | jq "
      "'.records[].latency_ns'",
      [&globals, options] { return QueryRecords(globals, *options); });
  AddRecordFiles(records, globals);
  AddRecordStore(records, globals);
}

}  // namespace hone::cli

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
#include "client/cli/json_output.h"
#include "client/cli/known_best.h"
#include "client/cli/roofline.h"
#include "client/cli/table.h"
#include "client/cli/terminal.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

// One schedule of the workload.
struct Row {
  const char* name;
  record::Record record;
  double latency_ns = 0;  // steady, so that rows are comparable
};

bool Worked(const record::Record& record, const record::Record& best) {
  return record.result.outcome == record::Outcome::kOk && !record.quarantined &&
         record.tolerance == best.tolerance;
}

// Whether `a` is the more reliable of two measurements of a schedule: a confirmed measurement is
// preferred, then the later one.
bool SaysMore(const record::Record& a, const record::Record& b) {
  const bool confirmed = a.policy.name == "confirm";
  return confirmed != (b.policy.name == "confirm") ? confirmed : a.id > b.id;
}

// The default schedule, the best and the fastest schedule with another program, if known.
std::vector<Row> RowsOf(const record::Record& best, const std::vector<record::Record>& records) {
  std::optional<record::Record> untiled;
  std::vector<record::Record> others;  // the most reliable record of each candidate
  std::string best_program;            // only records of builds contain it
  for (const record::Record& record : records) {
    const std::string& program = record.result.facts.program_digest;
    if (record.candidate == best.candidate && !program.empty()) best_program = program;
  }
  for (const record::Record& record : records) {
    if (!Worked(record, best)) continue;
    if (record.is_default && (!untiled || SaysMore(record, *untiled))) untiled = record;
    const std::string& program = record.result.facts.program_digest;
    if (record.is_default || record.candidate == best.candidate ||
        (!program.empty() && program == best_program)) {
      continue;
    }
    const auto same = std::find_if(others.begin(), others.end(), [&](const record::Record& other) {
      return other.candidate == record.candidate;
    });
    if (same == others.end()) {
      others.push_back(record);
    } else if (SaysMore(record, *same)) {
      *same = record;
    }
  }
  std::vector<Row> rows;
  const auto add = [&](const char* name, const record::Record& record) {
    rows.push_back({name, record, record::SteadyLatencyNs(record.result)});
  };
  if (untiled) add("default", *untiled);
  add("best", best);
  const auto runner_up = std::min_element(
      others.begin(), others.end(), [](const record::Record& a, const record::Record& b) {
        return record::SteadyLatencyNs(a.result) < record::SteadyLatencyNs(b.result);
      });
  if (runner_up != others.end()) add("runner-up", *runner_up);
  return rows;
}

// The job that measured a record: "evolutionary, 256 trials".
std::string FoundBy(client::Connection& connection, const record::Record& record) {
  const absl::StatusOr<client::Job> job = connection.GetJob(record.job_id);
  if (!job.ok()) return "-";
  if (job->spec.revalidate > 0) return "revalidated";
  return absl::StrCat(job->spec.strategy.empty() ? "-" : job->spec.strategy, ", ", job->trials,
                      " trials");
}

Json RowJson(const Row& row, const Roofline& roofline, const std::string& found_by) {
  const double gflops = row.latency_ns > 0 ? roofline.flops / row.latency_ns : 0;
  Json json = {{"latency_ns", row.latency_ns},
               {"gflops", gflops},
               {"share_of_roofline", nullptr},
               {"policy", row.record.policy.Key()},
               {"measured_unix_ms", row.record.created_unix_ms},
               {"found_by", found_by},
               {"record", row.record.id}};
  if (roofline.gflops > 0) json["share_of_roofline"] = gflops / roofline.gflops;
  return json;
}

void PrintRoofline(const Roofline& roofline) {
  if (!(roofline.gflops > 0)) {
    absl::PrintF("\nroofline: unknown, because no worker of the target has registered\n");
    return;
  }
  absl::PrintF("\nroofline: %s GFLOP/s, ", FormatGflops(roofline.gflops));
  if (roofline.memory_bound) {
    absl::PrintF("limited by memory: %.1f GB/s measured, %.1f operations per byte\n",
                 roofline.read_gbps, roofline.flops / roofline.bytes);
  } else {
    absl::PrintF("limited by the measured peak of fused multiply-adds%s\n",
                 roofline.read_gbps > 0 ? "" : " (the memory bandwidth is unknown)");
  }
}

absl::Status Compare(const Globals& globals, const BestWords& words) {
  HONE_ASSIGN_OR_RETURN(const KnownBest known, LookUpBest(globals, words));
  const client::Best& best = known.best;
  client::Connection& connection = known.session->connection();
  client::RecordFilter filter;
  filter.workload_digest = best.record.workload_digest;
  filter.target = best.record.target;
  HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> records,
                        connection.ListRecords(filter, /*limit=*/0));
  const std::vector<Row> rows = RowsOf(best.record, records);
  const Roofline roofline = RooflineOf(known.argument.workload, best);

  Json json = {{"workload", best.workload}, {"target", best.record.target}};
  Table table({Left(""), Right("latency"), Right("GFLOP/s"),
               Right(roofline.read_gbps > 0 ? "of roofline" : "of peak"), Right("speed-up"),
               Left("measured"), Left("policy"), Left("found by")});
  const double base = rows[0].record.is_default ? rows[0].latency_ns : 0;
  for (const Row& row : rows) {
    const double gflops = row.latency_ns > 0 ? roofline.flops / row.latency_ns : 0;
    const std::string found_by =
        row.record.is_default ? "untiled" : FoundBy(connection, row.record);
    table.AddRow({row.name, FormatLatency(row.latency_ns), FormatGflops(gflops),
                  FormatShare(gflops, roofline.gflops),
                  base > 0 ? absl::StrFormat("%.2fx", base / row.latency_ns) : "-",
                  FormatTime(row.record.created_unix_ms), row.record.policy.Key(), found_by});
    json[row.name] = RowJson(row, roofline, found_by);
  }
  if (globals.json) {
    json["roofline"] = {{"gflops", roofline.gflops},
                        {"peak_gflops", roofline.peak_gflops},
                        {"read_gbps", roofline.read_gbps},
                        {"bytes", roofline.bytes},
                        {"bound", roofline.memory_bound ? "memory" : "compute"}};
    return PrintJson(json);
  }
  PrintWrapped(absl::StrCat(known.argument.title, " on ", best.record.target));
  absl::PrintF("\n");
  table.Print();
  PrintRoofline(roofline);
  return absl::OkStatus();
}

}  // namespace

void AddCompare(Command& app, Globals& globals) {
  Command& command = app.AddCommand(
      "compare", "Compare the default schedule of an operator with the best and the runner-up");
  auto words = std::make_shared<BestWords>();
  AddBestWords(command, *words);
  Complete(
      command, globals,
      "Only reads stored results; the exit code is 3 if no schedule is known. The runner-up is the "
      "fastest schedule whose program differs from that of the best. The roofline is the smaller "
      "of two limits: the measured peak, and the measured memory bandwidth times the operations "
      "per byte of inputs and outputs. Operators that fit into caches may exceed the second limit. "
      "Latencies are scaled to the speed of the machine at the time when the best was "
      "measured.\n\n"
      "Examples:\n"
      "  hone compare matmul m=1024 n=1024 k=1024\n"
      "  hone compare conv2d n=1 h=56 w=56 ci=64 co=64 k=3 p=1 --json | jq .best.share_of_roofline",
      [&globals, words] { return Compare(globals, *words); });
}

}  // namespace hone::cli

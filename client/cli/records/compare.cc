#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/npy_argument.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/compared_rows.h"
#include "client/cli/records/explanation.h"
#include "client/cli/records/known_best.h"
#include "client/cli/records/policy_text.h"
#include "client/cli/suggested_command.h"
#include "client/cli/tune/run_job.h"
#include "common/base/counted.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/ir/roofline.h"
#include "common/ir/workload.h"
#include "common/record/processes.h"

namespace hone::cli {
namespace {

// The job that measured a record: "evolutionary, 256 trials".
std::string FoundBy(client::Connection& connection, const record::Record& record) {
  if (!record.proposer.empty()) return absl::StrCat("proposed by ", record.proposer);
  const absl::StatusOr<v1::Job> job = connection.GetJob(record.job_id);
  if (!job.ok()) return "-";
  if (job->request().revalidate() > 0) return "revalidated";
  return absl::StrCat(job->request().strategy().empty() ? "-" : job->request().strategy(), ", ",
                      Counted(job->trials(), "trial"));
}

constexpr char kAboveMemoryText[] =
    "* more than 100 %: part of the data stay in caches, or the memory is faster now than when the "
    "worker started and measured it";

// Whether an undisturbed process measured the row. Otherwise its latency may be too high.
bool IsCertain(const ComparedRow& row) { return !record::IsOnlyDisturbed(row.record.result); }

Json RowJson(const ComparedRow& row, const ir::Roofline& roofline, const std::string& found_by) {
  const double gflops = row.latency_ns > 0 ? roofline.flops / row.latency_ns : 0;
  Json json = {{"latency_ns", row.latency_ns},
               {"gflops", gflops},
               {"share_of_roofline", nullptr},
               {"policy", row.record.policy.Key()},
               {"processes", record::ProcessesOf(row.record.result)},
               {"confirmed", IsCertain(row)},
               {"measured_unix_ms", row.record.created_unix_ms},
               {"found_by", found_by},
               {"record", row.record.id}};
  if (roofline.gflops > 0) json["share_of_roofline"] = gflops / roofline.gflops;
  return json;
}

struct CompareOptions {
  BestWords words;
  std::vector<std::string> in;
};

// What is compared.
struct Measured {
  record::Record best;
  std::vector<record::Record> records;
};

absl::StatusOr<Measured> ReadMeasured(const KnownBest& known) {
  v1::ListRecordsRequest filter;
  filter.set_workload_digest(known.best.record().workload_digest());
  filter.set_target(known.best.record().target());
  Measured measured{.best = client::RecordOf(known.best)};
  HONE_ASSIGN_OR_RETURN(measured.records,
                        known.session->connection().ListRecords(filter, /*limit=*/0));
  return measured;
}

// Measures the best, the next best and the default schedules on data of a user, unless this was
// done before. `inputs`: from ReadGivenInputs.
absl::StatusOr<Measured> MeasureOn(const std::string& inputs, const KnownBest& known) {
  const std::string digest = Sha256Of(inputs);
  for (const bool again : {false, true}) {
    HONE_ASSIGN_OR_RETURN(Measured measured, ReadMeasured(known));
    if (auto best = BestOn(digest, measured.best, measured.records)) {
      measured.best = *std::move(best);
      return measured;
    }
    if (again) break;
    constexpr int kCandidates = 3;
    v1::CreateJobRequest spec;
    spec.set_workload(known.best.workload());
    spec.set_target(known.best.record().target());
    spec.set_tolerance(known.best.record().tolerance());
    spec.set_max_trials(kCandidates);
    spec.set_revalidate(kCandidates);
    spec.set_unpublished(true);
    HONE_ASSIGN_OR_RETURN(*spec.mutable_inputs_digest(),
                          known.session->connection().UploadInputs(inputs));
    HONE_ASSIGN_OR_RETURN(const FollowedJob followed, RunJob(*known.session, spec));
    HONE_RETURN_IF_ERROR(CheckNotCancelled(followed));
    if (followed.job.state() == v1::JOB_STATE_DONE) continue;
    return absl::AbortedError(absl::StrCat(
        "job ", followed.job.id(),
        " could not measure on the given data: ", WithRepeatedOptions(followed.job.error())));
  }
  return absl::AbortedError(absl::StrCat(
      "the best was not measured on the given data in ", record::kProcesses,
      " undisturbed processes; try again when the machine is idle (\"hone doctor\" shows what "
      "disturbs it)"));
}

absl::Status Compare(const Globals& globals, const CompareOptions& options) {
  HONE_ASSIGN_OR_RETURN(WorkloadArgument argument, ReadWorkloadArgument(options.words.words));
  HONE_ASSIGN_OR_RETURN(const std::string inputs, ReadGivenInputs(options.in, argument.workload));
  HONE_ASSIGN_OR_RETURN(KnownBest known,
                        LookUpBest(globals, std::move(argument), options.words.tolerance));
  absl::StatusOr<Measured> measured =
      inputs.empty() ? ReadMeasured(known) : MeasureOn(inputs, known);
  HONE_RETURN_IF_ERROR(measured.status());
  const record::Record& best = measured->best;
  if (!inputs.empty()) {
    known.best.set_gflops(FlopCount(known.argument.workload) /
                          record::SteadyLatencyNs(best.result));
  }
  const std::vector<record::Record>& records = measured->records;
  client::Connection& connection = known.session->connection();
  const std::vector<ComparedRow> rows = RowsOf(best, records);
  const ir::Roofline roofline =
      ir::RooflineOf(known.argument.workload, client::SpeedOf(known.best));

  Json json = {
      {"workload", known.best.workload()}, {"target", best.target}, {"inputs", best.result.inputs}};
  Table table({Left(""), Right("latency"), Right("GFLOP/s"),
               Right(roofline.read_gbps > 0 ? "of roofline" : "of peak"), Right("speed-up"),
               Left("measured"), Right("processes"), Left("purpose"), Left("found by")});
  // A speed-up needs two latencies that are certain.
  const bool is_comparable =
      rows[0].record.is_default && std::all_of(rows.begin(), rows.end(), IsCertain);
  const double base = is_comparable ? rows[0].latency_ns : 0;
  for (const ComparedRow& row : rows) {
    const double gflops = row.latency_ns > 0 ? roofline.flops / row.latency_ns : 0;
    const std::string found_by =
        row.record.is_default ? "untiled" : FoundBy(connection, row.record);
    const bool certain = IsCertain(row);
    table.AddRow({row.name, MarkUnconfirmed(FormatLatency(row.latency_ns), certain),
                  MarkUnconfirmed(FormatGflops(gflops), certain),
                  FormatShareOfPeak(gflops, roofline.gflops), FormatSpeedUp(base, row.latency_ns),
                  FormatTime(row.record.created_unix_ms),
                  absl::StrCat(record::ProcessesOf(row.record.result)),
                  PolicyText(row.record.policy), found_by});
    json[row.name] = RowJson(row, roofline, found_by);
  }
  const auto has_row = [&](absl::string_view name) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const ComparedRow& row) { return row.name == name; });
  };
  std::vector<std::string> missing;
  for (const char* const name : {"default", "runner-up"}) {
    const bool is_default = absl::string_view(name) == "default";
    if (has_row(name) || (is_default && best.is_default)) continue;
    missing.push_back(WhyMissing(is_default, best, records));
    json["missing_rows"][name] = missing.back();
  }
  if (globals.json) {
    json["roofline"] = RooflineJson(roofline);
    return PrintJson(json);
  }
  PrintWrapped(absl::StrCat(known.argument.title, " on ", best.target));
  absl::PrintF("\n");
  table.Print();
  if (std::any_of(rows.begin(), rows.end(), [&](const ComparedRow& row) {
        return row.latency_ns > 0 && IsAbovePeak(roofline.flops / row.latency_ns, roofline.gflops);
      })) {
    PrintWrapped(absl::StrCat("\n", roofline.memory_bound ? kAboveMemoryText : kAbovePeakText));
  }
  if (!inputs.empty()) {
    PrintWrapped(absl::StrCat("\nmeasured on the given data, ", best.result.inputs));
  }
  if (!std::all_of(rows.begin(), rows.end(), IsCertain)) {
    PrintWrapped(
        "\nother work disturbed every process that measured a row marked with ~: its latency may "
        "be too high");
  }
  const ComparedRow& last = rows.back();
  if (!(last.latency_ns > record::SteadyLatencyNs(best.result)) && last.record.id != best.id) {
    PrintWrapped(
        "\nthe runner-up looks faster, but no confirmation showed that it is clearly faster than "
        "the best");
  }
  for (const std::string& why : missing) PrintWrapped(absl::StrCat("\n", why));
  PrintWrapped(absl::StrCat("\n", RooflineText(roofline)));
  return absl::OkStatus();
}

}  // namespace

void AddCompare(Command& app, Globals& globals) {
  Command& command = app.AddCommand(
      "compare", "Compare the default schedule of an operator with the best and the runner-up");
  auto options = std::make_shared<CompareOptions>();
  AddBestWords(command, options->words);
  AddGivenInputs(command, options->in);
  Complete(
      command, globals,
      "Only reads stored results; the exit code is 3 if no schedule is known. With --in, the best "
      "three schedules and the default are measured on the given data, unless they were before; "
      "nothing is published. The runner-up is the "
      "fastest schedule whose program differs from that of the best. Every latency is the median "
      "of the processes that measured the schedule. The default schedule and the runner-up are "
      "left out, with the reason, if there were fewer than three undisturbed ones; the best is "
      "always shown. The roofline is the smaller of two limits: the measured peak, and the "
      "measured memory bandwidth times the operations per byte of inputs and outputs. It is "
      "unknown if the best exceeds the second limit, because its data then stay in caches; in "
      "JSON, "
      "\"bound\" is \"cache\". Latencies are scaled to the speed of the "
      "machine when its worker registered.\n\n"
      "Examples:\n"
      "  hone compare matmul m=1024 n=1024 k=1024\n"
      "  hone compare softmax m=512 n=512 --in activations.npy\n"
      "  hone compare conv2d n=1 h=56 w=56 ci=64 co=64 k=3 p=1 --json | jq .best.share_of_roofline",
      [&globals, options] { return Compare(globals, *options); });
}

}  // namespace hone::cli

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/network/network_best.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/known_best.h"
#include "client/cli/records/policy_text.h"
#include "client/cli/workload_argument.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"

namespace hone::cli {
namespace {

struct BestOptions {
  BestWords words;
  bool nearest = false;
  bool trace = false;
  std::string file;  // a list of workloads
  std::vector<std::string> shapes;
  std::string report;
};

// InvalidArgument: an option is for networks only.
absl::Status CheckOfOperators(const BestOptions& options) {
  if (options.report.empty() && options.shapes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("--report and --shape are for networks (FILE.onnx)");
}

void PrintMeasured(const v1::Best& best) {
  const bool confirmed = client::LatencyIsConfirmed(best);
  absl::PrintF("latency   %s%s\n", MarkUnconfirmed(FormatLatency(best.latency_ns()), confirmed),
               confirmed ? "" : absl::StrCat(" (", best.record().result().detail(), ")"));
  // Some operators only move data.
  if (best.gflops() > 0) {
    absl::PrintF("GFLOP/s   %s", MarkUnconfirmed(FormatGflops(best.gflops()), confirmed));
    if (best.peak_gflops() > 0) {
      absl::PrintF(" (%s of peak)", FormatShareOfPeak(best.gflops(), best.peak_gflops()));
    }
    absl::PrintF("\n");
    if (IsAbovePeak(best.gflops(), best.peak_gflops())) PrintWrapped(kAbovePeakText);
  }
  PrintWrapped(
      absl::StrCat("measured  ", FormatTime(best.record().created_unix_ms()), ", ",
                   PolicyText(client::RecordOf(best).policy), ", job ", best.record().job_id()),
      "          ");
  if (best.pinned_unix_ms() > 0) absl::PrintF("%s\n", PinText(best));
}

void PrintNearest(const v1::Nearest& nearest) {
  PrintWrapped(absl::StrCat("not measured: the schedule was adapted from that of ",
                            ir::SignatureOfText(nearest.workload()),
                            ", the nearest measured workload, and replayed"));
  PrintWrapped(
      absl::StrFormat(
          "nearest   distance %.2f, that workload takes %s, job %s", nearest.distance(),
          FormatSpeed(nearest.latency_ns(), nearest.gflops(), client::LatencyIsConfirmed(nearest)),
          nearest.record().job_id()),
      "          ");
}

absl::Status ShowBest(const Globals& globals, const BestOptions& options) {
  if (NamesNetwork(options.words.words)) {
    if (options.nearest || options.trace) {
      return absl::InvalidArgumentError("--nearest and --trace are for one operator");
    }
    return ShowNetworkBest(globals, {options.words.words[0], options.shapes},
                           options.words.tolerance, options.report);
  }
  HONE_RETURN_IF_ERROR(CheckOfOperators(options));
  HONE_ASSIGN_OR_RETURN(const KnownBest known,
                        LookUpBest(globals, options.words, {.nearest = options.nearest}));
  const v1::Best& best = known.best;
  if (globals.json) return PrintJson(BestJson(best));
  PrintWrapped(absl::StrCat(known.argument.title, " on ", best.record().target()));
  absl::PrintF("\n");
  if (best.has_nearest()) {
    PrintNearest(best.nearest());
  } else {
    PrintMeasured(best);
  }
  if (options.trace) PrintText(absl::StrCat("\n", best.trace()));
  return absl::OkStatus();
}

// The cells of a row: workload, latency, GFLOP/s, share of the peak, origin. `unconfirmed`: see
// UnconfirmedJobs; "" if a best is known.
std::vector<std::string> RowOf(const WorkloadArgument& argument,
                               const std::optional<v1::Best>& best,
                               const std::string& unconfirmed) {
  if (!best.has_value()) {
    return {argument.title, "-", "-", "-", UnknownText(unconfirmed)};
  }
  if (best->has_nearest()) {
    return {argument.title, "-", "-", "-",
            absl::StrFormat("adapted from %s, distance %.2f",
                            ir::SignatureOfText(best->nearest().workload()),
                            best->nearest().distance())};
  }
  const bool confirmed = client::LatencyIsConfirmed(*best);
  return {argument.title, MarkUnconfirmed(FormatLatency(best->latency_ns()), confirmed),
          MarkUnconfirmed(FormatGflops(best->gflops()), confirmed),
          FormatShareOfPeak(best->gflops(), best->peak_gflops()),
          absl::StrCat("job ", best->record().job_id())};
}

// Looks up every workload of a list, on one connection.
absl::Status ShowBests(const Globals& globals, const BestOptions& options) {
  HONE_RETURN_IF_ERROR(CheckOfOperators(options));
  HONE_ASSIGN_OR_RETURN(
      const std::vector<WorkloadArgument> arguments,
      options.file.empty() ? ReadWorkloads(options.words.words) : ReadWorkloadList(options.file));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->TargetKey());
  Json list = Json::array();
  Table table({Left("workload"), Right("latency"), Right("GFLOP/s"), Right("of peak"), Left("")});
  bool above_peak = false;
  UnconfirmedJobs jobs(*session, target, options.words.tolerance);
  const auto add = [&](const WorkloadArgument& argument, const std::optional<v1::Best>& best) {
    const std::string unconfirmed = best.has_value() ? "" : jobs.Find(argument).job;
    if (!globals.json) {
      above_peak |= best.has_value() && IsAbovePeak(best->gflops(), best->peak_gflops());
      table.AddRow(RowOf(argument, best, unconfirmed));
    } else if (best.has_value()) {
      list.push_back(BestJson(*best));
    } else {
      list.push_back({{"workload", argument.text},
                      {"target", target},
                      {"best", nullptr},
                      {"unconfirmed_job", UnknownJson(unconfirmed)}});
    }
    return absl::OkStatus();
  };
  HONE_ASSIGN_OR_RETURN(
      const std::vector<std::string> unknown,
      VisitBests(*session, arguments, options.words.tolerance, options.nearest, add));
  const absl::Status result =
      CheckAllKnown(*session, unknown, arguments.size(), options.file, target,
                    options.words.tolerance, absl::StrJoin(options.words.words, " "));
  if (globals.json)
    return PrintJson({{"bests", std::move(list)}, {"unknown", unknown.size()}}, result);
  table.Print();
  if (above_peak) PrintWrapped(absl::StrCat("\n", kAbovePeakText));
  return result;
}

absl::Status ShowBestOrBests(const Globals& globals, const BestOptions& options) {
  if (!options.file.empty()) return ShowBests(globals, options);
  HONE_ASSIGN_OR_RETURN(const std::optional<OperatorSizes> sizes,
                        ReadOperatorSizes(options.words.words));
  if (!sizes.has_value()) return ShowBest(globals, options);
  if (options.trace) return absl::InvalidArgumentError("--trace is for one size of an operator");
  return ShowBests(globals, options);
}

}  // namespace

void AddBest(Command& app, Globals& globals) {
  Command& command =
      app.AddCommand("best", "Look up the best known schedule, without measuring anything");
  auto options = std::make_shared<BestOptions>();
  AddBestWords(command, options->words, /*required=*/false, Names::kOperatorOrNetwork);
  command.AddFlag(
      "--nearest", options->nearest,
      "If no schedule is known, adapt that of the nearest shape of the same operator; the output "
      "says that it was not measured");
  command.Add("--file", options->file,
              "LIST of workloads to look up, one on each line; - reads standard input. Names of "
              "files in it are relative to the current folder",
              {NotEmpty(), Excludes("operator")});
  AddShapes(command, options->shapes);
  command.Add("--report", options->report, "FILE.html to write about the tasks of a network",
              {NotEmpty(), Excludes("--file")});
  command.AddFlag("--trace", options->trace, "Also print the trace of the schedule",
                  {Excludes("--file")});
  AddLocked(command, globals, {Excludes("--nearest")});
  Complete(command, globals,
           "The exit code is 3 if no schedule is known for a workload. Only confirmed schedules "
           "count. A figure is marked with ~ if other work disturbed every process that confirmed "
           "it (confirmed is false in JSON). If none is known while a job searches for it, the "
           "message names that job. If a "
           "job has measured a workload of a --file or a task of a network without "
           "confirming a schedule, the list names that job (unconfirmed_job in JSON).\n\n"
           "With --nearest, the adapted schedule was replayed, but neither built nor checked: "
           "hone schedule --check does both. For a network (FILE.onnx), the tasks are listed with "
           "the sum of their latencies. A task without a confirmed schedule shows the best "
           "measured one, or that hone run and hone export use the draft's (schedule in JSON); "
           "the exit code is 3 only if nothing of the network was ever tuned.\n\n"
           "Examples:\n"
           "  hone best matmul m=1024 n=1024 k=1024\n"
           "  hone best matmul m=1000 n=1000 k=1000 --nearest --trace\n"
           "  hone best --file network.txt --json\n"
           "  hone best resnet50.onnx\n"
           "  hone --server hone.internal:7070 best mine.hone --json",
           [&globals, options] { return ShowBestOrBests(globals, *options); });
}

}  // namespace hone::cli

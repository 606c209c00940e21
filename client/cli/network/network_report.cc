#include "client/cli/network/network_report.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/substitute.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/exit_code.h"
#include "client/cli/network/numeric_error.h"
#include "client/cli/output/format.h"
#include "client/cli/output/svg_plot.h"
#include "common/base/counted.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/ir/roofline.h"
#include "common/ir/workload.h"
#include "common/ir/workload_parser.h"

namespace hone::cli {
namespace {

constexpr size_t kMostBars = 20;

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$0</title>
<style>
:root { color-scheme: light dark; --text: #1d2330; --dim: #667; --line: #ccd; --accent: #2864c8; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7ee; --dim: #99a; --line: #445; --accent: #7aa7ff; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); margin: 2rem auto; max-width: 75rem;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; }
h2 { font-size: 1.15rem; margin-top: 2rem; }
p.dim, td.dim { color: var(--dim); }
table { border-collapse: collapse; }
th, td { padding: 0.2rem 0.7rem; text-align: right; vertical-align: top;
         border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
th.left, td.left { text-align: left; }
td.types { font-family: ui-monospace, monospace; font-size: 0.85em; overflow-wrap: anywhere; }
svg { max-width: 100%; height: auto; }
svg .label { font: 12px system-ui, sans-serif; fill: var(--text); }
svg .axis { stroke: var(--dim); }
svg .grid { stroke: var(--line); }
svg .line { stroke: var(--accent); stroke-width: 2; fill: none; }
svg .bar { fill: var(--accent); }
</style>
</head>
<body>
)";

double PartOf(const ReportedTask& task) {
  return task.latency_ns * static_cast<double>(task.weight);
}

double SumOf(const NetworkReport& report) {
  double sum = 0;
  for (const ReportedTask& task : report.tasks) sum += PartOf(task);
  return sum;
}

bool IsComplete(const NetworkReport& report) {
  return std::all_of(report.tasks.begin(), report.tasks.end(),
                     [](const ReportedTask& task) { return task.latency_ns > 0; });
}

bool IsConfirmed(const NetworkReport& report) {
  return std::all_of(report.tasks.begin(), report.tasks.end(),
                     [](const ReportedTask& task) { return task.confirmed; });
}

// Explains ~.
std::string MarkText(const NetworkReport& report) {
  if (IsConfirmed(report)) return "";
  return "<p class=\"dim\">A figure marked with ~ is not confirmed: other work disturbed every "
         "process that measured it, so that the latency may be too high.</p>\n";
}

std::string Row(absl::string_view name, absl::string_view value) {
  return absl::StrCat("<tr><td class=\"left\">", EscapeHtml(name), "</td><td class=\"left\">",
                      EscapeHtml(value), "</td></tr>\n");
}

std::string Summary(const NetworkReport& report) {
  std::string html = "<table>\n";
  if (report.measured) {
    absl::StrAppend(
        &html, Row("whole network, measured",
                   absl::StrFormat("%s (fastest run %s)",
                                   MarkUnconfirmed(FormatLatency(report.measured->speed.latency_ns),
                                                   report.disturbance.empty()),
                                   FormatLatency(report.measured->fastest_ns))));
    if (!report.disturbance.empty()) {
      absl::StrAppend(&html, Row("", DisturbanceText(report.disturbance)));
    }
  }
  if (report.algorithm_error > 0) {
    absl::StrAppend(&html, Row("error of other algorithms",
                               absl::StrFormat("%.1e of the largest magnitude, for random inputs",
                                               report.algorithm_error)));
  }
  const double sum = SumOf(report);
  absl::StrAppend(&html, Row(IsComplete(report) ? "sum of kernels" : "sum of the known kernels",
                             MarkUnconfirmed(FormatLatency(sum), IsConfirmed(report))));
  if (report.job) {
    const double before = report.job->network().default_latency_ns();
    if (before > 0 && sum > 0) {
      absl::StrAppend(&html,
                      Row("default schedules", absl::StrCat(FormatLatency(before), ", speed-up ",
                                                            FormatSpeedUp(before, sum))));
    }
    absl::StrAppend(
        &html,
        Row("job", absl::StrCat(report.job->id(), ", ", Counted(report.job->trials(), "trial"),
                                " in ", FormatClock(absl::Milliseconds(report.job->wall_ms())))));
  }
  return absl::StrCat(html, "</table>\n");
}

std::string TaskRow(const NetworkReport& report, const ReportedTask& task) {
  const auto cell = [](absl::string_view text) {
    return absl::StrCat("<td>", EscapeHtml(text), "</td>");
  };
  const std::string note = !task.error.empty()   ? absl::StrCat("failed: ", task.error)
                           : task.latency_ns > 0 ? task.bound
                                                 : "nothing known";
  std::string html =
      absl::StrCat("<tr><td class=\"left\">", EscapeHtml(task.name),
                   task.algorithm.empty() ? "" : EscapeHtml(absl::StrCat(", ", task.algorithm)),
                   "</td><td class=\"left types\">", EscapeHtml(task.types), "</td>",
                   cell(absl::StrCat(task.weight)));
  if (report.job) absl::StrAppend(&html, cell(absl::StrCat(task.trials)));
  absl::StrAppend(&html, cell(MarkUnconfirmed(FormatLatency(task.latency_ns), task.confirmed)),
                  cell(FormatShare(PartOf(task), SumOf(report))),
                  cell(MarkUnconfirmed(FormatGflops(task.gflops), task.confirmed)),
                  cell(FormatShareOfPeak(task.gflops, task.limit_gflops)));
  if (report.job) {
    absl::StrAppend(&html, cell(FormatSpeedUp(task.default_latency_ns, task.latency_ns)));
  }
  return absl::StrCat(html, "<td class=\"left dim\">", EscapeHtml(note), "</td></tr>\n");
}

std::string Tasks(const NetworkReport& report, const std::vector<ReportedTask>& sorted) {
  std::string html =
      "<h2>Tasks</h2>\n<p class=\"dim\">Latencies are of one step. The roofline is the smaller of "
      "the measured peak and the measured memory bandwidth times the operations per byte. It is "
      "unknown for a task whose data stay in caches.</p>\n"
      "<table>\n<tr><th class=\"left\">operator</th><th class=\"left\">types</th><th>steps</th>";
  if (report.job) absl::StrAppend(&html, "<th>trials</th>");
  absl::StrAppend(&html, "<th>latency</th><th>of all</th><th>GFLOP/s</th><th>of roofline</th>");
  if (report.job) absl::StrAppend(&html, "<th>speed-up</th>");
  absl::StrAppend(&html, "<th class=\"left\">bound by</th></tr>\n");
  for (const ReportedTask& task : sorted) absl::StrAppend(&html, TaskRow(report, task));
  const bool above = std::any_of(sorted.begin(), sorted.end(), [](const ReportedTask& task) {
    return IsAbovePeak(task.gflops, task.limit_gflops);
  });
  return absl::StrCat(
      html, "</table>\n", MarkText(report),
      above ? absl::StrCat("<p class=\"dim\">", EscapeHtml(kAbovePeakText), "</p>\n") : "");
}

std::string Parts(const NetworkReport& report, const std::vector<ReportedTask>& sorted) {
  std::vector<Bar> bars;
  for (const ReportedTask& task : sorted) {
    if (bars.size() == kMostBars || !(task.latency_ns > 0)) break;
    bars.push_back(
        {absl::StrCat(task.name, task.weight > 1 ? absl::StrCat(" x ", task.weight) : ""),
         PartOf(task),
         absl::StrCat(FormatLatency(PartOf(task)), ", ",
                      FormatShare(PartOf(task), SumOf(report)))});
  }
  if (bars.empty()) return "";
  return absl::StrCat("<h2>Where the time goes</h2>\n", BarPlot(bars));
}

std::string Estimates(const NetworkReport& report) {
  if (!report.job || report.job->network().estimates().size() < 2) return "";
  std::vector<std::pair<double, double>> points;
  for (const v1::NetworkEstimate& estimate : report.job->network().estimates()) {
    points.emplace_back(static_cast<double>(estimate.wall_ms()) / 1e3, estimate.latency_ns() / 1e6);
  }
  return absl::StrCat("<h2>Estimated latency while tuning</h2>\n",
                      StepPlot(points, "seconds", "ms, sum of kernels"));
}

}  // namespace

namespace {

ReportedTask TaskOf(const ir::Workload& workload, int64_t weight,
                    const std::optional<v1::Best>& best) {
  ReportedTask task{.name = workload.name,
                    .types = absl::StrCat(ir::TypesOf(workload, workload.Inputs()), " -> ",
                                          ir::TypesOf(workload, workload.Outputs())),
                    .weight = weight};
  if (!best.has_value()) return task;
  const ir::Roofline roofline = ir::RooflineOf(workload, client::SpeedOf(*best));
  task.latency_ns = best->latency_ns();
  task.confirmed = client::LatencyIsConfirmed(*best);
  task.gflops = best->gflops();
  task.limit_gflops = roofline.gflops;
  if (roofline.peak_gflops > 0) task.bound = ir::BoundOf(roofline);
  task.algorithm = AlgorithmOf(best->trace());
  return task;
}

void AddProgress(const v1::NetworkTaskProgress& progress, ReportedTask& task) {
  task.trials = progress.trials();
  task.default_latency_ns = progress.default_latency_ns();
  task.error = progress.error();
}

}  // namespace

absl::StatusOr<NetworkReport> MakeReport(const v1::Job& job,
                                         const std::vector<std::optional<v1::Best>>& bests) {
  NetworkReport report{.network = job.network().name(),
                       .target = job.target(),
                       .created_unix_ms = absl::ToUnixMillis(absl::Now()),
                       .job = job};
  for (int t = 0; t < job.network().tasks_size(); ++t) {
    const v1::NetworkTaskProgress& progress = job.network().tasks(t);
    HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(progress.workload()));
    const double weight =
        std::accumulate(progress.weights().begin(), progress.weights().end(), 0.0);
    ReportedTask& task =
        report.tasks.emplace_back(TaskOf(workload, static_cast<int64_t>(weight + 0.5), bests[t]));
    AddProgress(progress, task);
    if (bests[t].has_value()) continue;
    task.latency_ns = progress.latency_ns();
    task.confirmed = client::LatencyIsConfirmed(progress);
    task.gflops = progress.gflops();
  }
  return report;
}

NetworkReport MakeReport(const NetworkArgument& network, const std::string& target,
                         const std::vector<std::optional<v1::Best>>& bests, const v1::Job* job) {
  NetworkReport report{.network = network.path,
                       .target = target,
                       .created_unix_ms = absl::ToUnixMillis(absl::Now())};
  if (job != nullptr) report.job = *job;
  for (size_t t = 0; t < network.tasks.size(); ++t) {
    ReportedTask& task = report.tasks.emplace_back(
        TaskOf(network.tasks[t].workload, network.partition.tasks[t].weight, bests[t]));
    if (job != nullptr && static_cast<int>(t) < job->network().tasks_size()) {
      AddProgress(job->network().tasks(static_cast<int>(t)), task);
    }
  }
  return report;
}

std::string ReportHtml(const NetworkReport& report) {
  const std::string title = EscapeHtml(std::filesystem::path(report.network).filename().string());
  std::vector<ReportedTask> sorted = report.tasks;
  std::stable_sort(sorted.begin(), sorted.end(), [](const ReportedTask& a, const ReportedTask& b) {
    return PartOf(a) > PartOf(b);
  });
  return absl::StrCat(absl::Substitute(kHead, title), "<h1>", title, "</h1>\n<p class=\"dim\">",
                      EscapeHtml(report.target), ", ", FormatTime(report.created_unix_ms), "</p>\n",
                      Summary(report), Parts(report, sorted), Estimates(report),
                      Tasks(report, sorted), "</body>\n</html>\n");
}

absl::Status CheckReportPath(const std::string& path, absl::string_view option) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(option, " ", path, ": there is no folder ", folder.string()));
}

absl::Status WriteReport(const NetworkReport& report, const std::string& path) {
  return WithExitCode(WriteFileAtomically(path, ReportHtml(report)), kExitFailed);
}

}  // namespace hone::cli

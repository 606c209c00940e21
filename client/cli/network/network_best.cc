#include "client/cli/network/network_best.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/network/network_kernels.h"
#include "client/cli/network/network_report.h"
#include "client/cli/network/network_sizes.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/network_output.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/known_best.h"
#include "client/cli/tune/running_job.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

// What is known of the tasks of a network.
struct NetworkBests {
  std::vector<TaskSchedule> schedules;
  ScheduleCounts counts;
  std::vector<std::string> unknown;  // the digests of the tasks without a best
  int64_t disturbed = 0;             // the number of bests whose latency is not confirmed
  double latency_ns = 0;             // the weighted sum over tasks with a latency
  double known_flops = 0;            // the weighted sum over tasks with a best
  double flops = 0;                  // the weighted sum over all tasks

  // Whether every task has a latency.
  bool IsComplete() const { return counts.draft == 0; }
  bool IsConfirmed() const { return unknown.empty() && disturbed == 0; }
  // The published best of each task; nullopt if it has none.
  std::vector<std::optional<v1::Best>> Published() const {
    std::vector<std::optional<v1::Best>> bests;
    for (const TaskSchedule& schedule : schedules) {
      const bool published = schedule.source == ScheduleSource::kConfirmed;
      bests.push_back(published ? schedule.best : std::nullopt);
    }
    return bests;
  }
};

absl::StatusOr<NetworkBests> LookUp(Session& session, const NetworkArgument& network,
                                    double tolerance) {
  NetworkBests found;
  HONE_ASSIGN_OR_RETURN(found.schedules, FindSchedules(session, network.tasks, tolerance));
  found.counts = CountSchedules(found.schedules);
  for (size_t t = 0; t < found.schedules.size(); ++t) {
    const TaskSchedule& schedule = found.schedules[t];
    const graph::Task& task = network.partition.tasks[t];
    const auto weight = static_cast<double>(task.weight);
    found.flops += task.flops * weight;
    if (schedule.best.has_value()) found.latency_ns += schedule.best->latency_ns() * weight;
    if (schedule.source != ScheduleSource::kConfirmed) {
      found.unknown.push_back(network.tasks[t].workload.StructuralDigest().ToHex());
      continue;
    }
    if (!client::LatencyIsConfirmed(*schedule.best)) ++found.disturbed;
    found.known_flops += task.flops * weight;
  }
  return found;
}

Json BestsJson(const NetworkArgument& network, const NetworkBests& found,
               const std::string& target) {
  Json tasks = Json::array();
  for (size_t t = 0; t < found.schedules.size(); ++t) {
    const TaskSchedule& schedule = found.schedules[t];
    Json each = {{"workload", network.tasks[t].text},
                 {"weight", network.partition.tasks[t].weight},
                 {"schedule", std::string(ScheduleSourceName(schedule.source))},
                 {"latency_ns", nullptr},
                 {"confirmed", nullptr},
                 {"gflops", nullptr},
                 {"job", nullptr},
                 {"processes", nullptr},
                 {"unconfirmed_job", UnknownJson(schedule.job)}};
    if (const auto& best = schedule.best; best.has_value()) {
      each["latency_ns"] = best->latency_ns();
      each["confirmed"] = client::LatencyIsConfirmed(*best);
      each["gflops"] = best->gflops();
      each["job"] = best->record().job_id();
      each["processes"] = best->processes();
    }
    tasks.push_back(std::move(each));
  }
  return {{"network", network.path},
          {"target", target},
          {"tasks", std::move(tasks)},
          {"known", found.counts.confirmed},
          {"schedule_count", ToJson(found.counts)},
          {"known_flops_share", found.flops > 0 ? found.known_flops / found.flops : 1.0},
          {"latency_ns", found.IsComplete() ? Json(found.latency_ns) : Json(nullptr)},
          {"confirmed", found.IsComplete() ? Json(found.IsConfirmed()) : Json(nullptr)}};
}

// The last cell of a task's row: where its schedule comes from.
std::string ScheduleOriginText(const TaskSchedule& schedule) {
  if (schedule.source == ScheduleSource::kConfirmed) {
    return absl::StrCat("job ", schedule.best->record().job_id());
  }
  if (schedule.source == ScheduleSource::kMeasured) {
    return absl::StrCat("job ", schedule.best->record().job_id(), ", not confirmed");
  }
  return absl::StrCat(UnknownText(schedule.job), "; the draft's is used");
}

void Print(const NetworkArgument& network, const NetworkBests& found, const std::string& target) {
  PrintWrapped(absl::StrCat(network.path, " on ", target, ": ",
                            Counted(static_cast<int64_t>(network.partition.tasks.size()), "task"),
                            ", ",
                            Counted(static_cast<int64_t>(network.partition.steps.size()), "step")));
  absl::PrintF("\n");
  Table table({Left("task"), Right("times"), Right("latency"), Right("GFLOP/s"), Right("of peak"),
               Right("of all"), Left("")});
  bool above_peak = false;
  for (size_t t = 0; t < found.schedules.size(); ++t) {
    const TaskSchedule& schedule = found.schedules[t];
    const std::string times = absl::StrCat(network.partition.tasks[t].weight);
    const auto& best = schedule.best;
    if (!best.has_value()) {
      table.AddRow(
          {network.tasks[t].title, times, "-", "-", "-", "-", ScheduleOriginText(schedule)});
      continue;
    }
    const double latency = best->latency_ns();
    const double part = latency * static_cast<double>(network.partition.tasks[t].weight);
    const bool confirmed = client::LatencyIsConfirmed(*best);
    above_peak = above_peak || IsAbovePeak(best->gflops(), best->peak_gflops());
    table.AddRow({network.tasks[t].title, times, MarkUnconfirmed(FormatLatency(latency), confirmed),
                  MarkUnconfirmed(FormatGflops(best->gflops()), confirmed),
                  FormatShareOfPeak(best->gflops(), best->peak_gflops()),
                  FormatShare(part, found.IsComplete() ? found.latency_ns : 0),
                  ScheduleOriginText(schedule)});
  }
  table.Print();
  if (above_peak) PrintWrapped(absl::StrCat("\n", kAbovePeakText));
  const int64_t known = found.counts.confirmed;
  const std::string text =
      found.unknown.empty()
          ? "all tasks are known; together they take"
          : absl::StrFormat("%d of the %d tasks %s known, with %.1f %% of the operations; %s",
                            known, found.schedules.size(), known == 1 ? "is" : "are",
                            found.flops > 0 ? 100 * found.known_flops / found.flops : 100.0,
                            found.IsComplete() ? "together, all tasks take"
                                               : "together, those with a latency take");
  PrintWrapped(absl::StrCat("\n", text, " ",
                            MarkUnconfirmed(FormatLatency(found.latency_ns), found.IsConfirmed()),
                            ", the sum of kernels timed one by one"));
  if (const std::string unconfirmed = UnconfirmedText(found.counts); !unconfirmed.empty()) {
    PrintWrapped(unconfirmed);
  }
  if (found.disturbed > 0) PrintWrapped(DisturbedTasksText(found.disturbed));
  if (const std::string less = LessCertainText(found.Published()); !less.empty()) {
    PrintWrapped(less);
  }
}

// What is known of one size, or why nothing is.
struct ShownSize {
  NetworkBests found;
  absl::Status result;
};

absl::StatusOr<ShownSize> LookUpSize(Session& session, const NetworkArgument& network,
                                     const std::string& target, double tolerance) {
  ShownSize shown;
  HONE_ASSIGN_OR_RETURN(shown.found, LookUp(session, network, tolerance));
  const NetworkBests& found = shown.found;
  const std::optional<RunningJob> running =
      FindRunningJob(session, found.unknown, target, tolerance);
  if (!found.counts.AnyMeasured() && !WasTuned(session, found.unknown, target, tolerance)) {
    shown.result = CheckNetworkKnown(network, found.unknown.size(), target, tolerance, running);
  } else if (running.has_value()) {
    PrintWrapped(stderr, RunningJobText(*running, found.unknown.size()));
  }
  return shown;
}

}  // namespace

absl::Status ShowNetworkBest(const Globals& globals, const NetworkWords& words, double tolerance,
                             const std::string& report) {
  HONE_RETURN_IF_ERROR(CheckReportPath(report));
  std::unique_ptr<Session> session;
  HONE_ASSIGN_OR_RETURN(const NetworkSizes sizes, ExpandKnownSizes(globals, words, session));
  if (sizes.AreSeveral() && !report.empty()) {
    return absl::InvalidArgumentError("--report is for one size of a network");
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<NetworkArgument> networks, ReadNetworks(globals, sizes));
  if (session == nullptr) {
    HONE_ASSIGN_OR_RETURN(session, Session::Open(globals));
  }
  HONE_ASSIGN_OR_RETURN(const std::string target, session->TargetKey());
  absl::Status result;
  Json list = Json::array();
  for (size_t k = 0; k < networks.size(); ++k) {
    const NetworkArgument& network = networks[k];
    HONE_ASSIGN_OR_RETURN(const ShownSize shown, LookUpSize(*session, network, target, tolerance));
    if (!report.empty()) {
      HONE_RETURN_IF_ERROR(WriteReport(
          MakeReport(network, target, shown.found.Published(), /*job=*/nullptr), report));
    }
    result.Update(shown.result);
    if (globals.json) {
      list.push_back(BestsJson(network, shown.found, target));
      if (sizes.AreSeveral()) list.back()["size"] = sizes.list[k].label;
      continue;
    }
    // If nothing is known, the error says all that there is to say.
    if (!shown.result.ok()) continue;
    if (sizes.AreSeveral()) absl::PrintF("%s%s\n", k > 0 ? "\n" : "", sizes.list[k].label);
    Print(network, shown.found, target);
  }
  if (!globals.json) return result;
  if (!sizes.AreSeveral()) return PrintJson(std::move(list[0]), result);
  return PrintJson({{"network", words.path}, {"target", target}, {"sizes", std::move(list)}},
                   result);
}

}  // namespace hone::cli

#include "client/cli/network/network_best.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/network/network_report.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/network_output.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/known_best.h"
#include "client/cli/tune/running_job.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "common/record/processes.h"

namespace hone::cli {
namespace {

// The best of each task of a network; nullopt if none is known.
struct NetworkBests {
  std::vector<std::optional<v1::Best>> bests;
  std::vector<std::string> unconfirmed;  // see UnconfirmedJobs; "" for a task with a best
  std::vector<std::string> unknown;      // the digests of the tasks without a best
  size_t known = 0;                      // the number of tasks with a best
  int64_t disturbed = 0;                 // the number of bests whose latency is not confirmed
  double latency_ns = 0;                 // the weighted sum over tasks with a best
  double known_flops = 0;                // the weighted sum over tasks with a best
  double flops = 0;                      // the weighted sum over all tasks
};

absl::StatusOr<NetworkBests> LookUp(Session& session, const NetworkArgument& network,
                                    const std::string& target, double tolerance) {
  NetworkBests found;
  UnconfirmedJobs jobs(session, target, tolerance);
  const auto add = [&](const WorkloadArgument& argument, const std::optional<v1::Best>& best) {
    const graph::Task& task = network.partition.tasks[found.bests.size()];
    found.bests.push_back(best);
    found.unconfirmed.push_back(best.has_value() ? "" : jobs.Find(argument));
    found.flops += task.flops * static_cast<double>(task.weight);
    if (!best.has_value()) return absl::OkStatus();
    ++found.known;
    if (!client::LatencyIsConfirmed(*best)) ++found.disturbed;
    found.known_flops += task.flops * static_cast<double>(task.weight);
    found.latency_ns += best->latency_ns() * static_cast<double>(task.weight);
    return absl::OkStatus();
  };
  HONE_ASSIGN_OR_RETURN(found.unknown,
                        VisitBests(session, network.tasks, tolerance, /*nearest=*/false, add));
  return found;
}

Json BestsJson(const NetworkArgument& network, const NetworkBests& found,
               const std::string& target) {
  Json tasks = Json::array();
  for (size_t t = 0; t < found.bests.size(); ++t) {
    const graph::Task& task = network.partition.tasks[t];
    Json each = {{"workload", network.tasks[t].text},
                 {"weight", task.weight},
                 {"latency_ns", nullptr},
                 {"confirmed", nullptr},
                 {"gflops", nullptr},
                 {"job", nullptr},
                 {"processes", nullptr},
                 {"unconfirmed_job", UnknownJson(found.unconfirmed[t])}};
    if (const auto& best = found.bests[t]; best.has_value()) {
      each["latency_ns"] = best->latency_ns();
      each["confirmed"] = client::LatencyIsConfirmed(*best);
      each["gflops"] = best->gflops();
      each["job"] = best->record().job_id();
      each["processes"] = best->processes();
    }
    tasks.push_back(std::move(each));
  }
  const bool complete = found.known == found.bests.size();
  return {{"network", network.path},
          {"target", target},
          {"tasks", std::move(tasks)},
          {"known", found.known},
          {"known_flops_share", found.flops > 0 ? found.known_flops / found.flops : 1.0},
          {"latency_ns", complete ? Json(found.latency_ns) : Json(nullptr)},
          {"confirmed", complete ? Json(found.disturbed == 0) : Json(nullptr)}};
}

void Print(const NetworkArgument& network, const NetworkBests& found, const std::string& target) {
  PrintWrapped(absl::StrCat(network.path, " on ", target, ": ",
                            Counted(static_cast<int64_t>(network.partition.tasks.size()), "task"),
                            ", ",
                            Counted(static_cast<int64_t>(network.partition.steps.size()), "step")));
  absl::PrintF("\n");
  Table table({Left("task"), Right("times"), Right("latency"), Right("GFLOP/s"), Right("of peak"),
               Right("of all"), Left("")});
  const bool complete = found.known == found.bests.size();
  for (size_t t = 0; t < found.bests.size(); ++t) {
    const std::string times = absl::StrCat(network.partition.tasks[t].weight);
    const auto& best = found.bests[t];
    if (!best.has_value()) {
      table.AddRow(
          {network.tasks[t].title, times, "-", "-", "-", "-", UnknownText(found.unconfirmed[t])});
      continue;
    }
    const double latency = best->latency_ns();
    const double part = latency * static_cast<double>(network.partition.tasks[t].weight);
    const bool confirmed = client::LatencyIsConfirmed(*best);
    table.AddRow({network.tasks[t].title, times, MarkUnconfirmed(FormatLatency(latency), confirmed),
                  MarkUnconfirmed(FormatGflops(best->gflops()), confirmed),
                  FormatShareOfPeak(best->gflops(), best->peak_gflops()),
                  FormatShare(part, complete ? found.latency_ns : 0),
                  absl::StrCat("job ", best->record().job_id())});
  }
  table.Print();
  if (std::any_of(found.bests.begin(), found.bests.end(), [](const auto& best) {
        return best.has_value() && IsAbovePeak(best->gflops(), best->peak_gflops());
      })) {
    PrintWrapped(absl::StrCat("\n", kAbovePeakText));
  }
  if (found.known == 0) return;
  const std::string known =
      complete ? "all tasks are known; together they take"
               : absl::StrFormat("%d of the %d tasks %s known, with %.1f %% of the operations; %s",
                                 found.known, found.bests.size(), found.known == 1 ? "is" : "are",
                                 found.flops > 0 ? 100 * found.known_flops / found.flops : 100.0,
                                 found.known == 1 ? "it takes" : "those take");
  PrintWrapped(absl::StrCat("\n", known, " ",
                            MarkUnconfirmed(FormatLatency(found.latency_ns), found.disturbed == 0),
                            ", the sum of kernels timed one by one"));
  if (found.disturbed > 0) PrintWrapped(DisturbedTasksText(found.disturbed));
  if (const std::string text = LessCertainText(found.bests); !text.empty()) PrintWrapped(text);
}

// Whether the store has anything of a task.
bool KnowsAnything(const NetworkBests& found) {
  return found.known > 0 || std::any_of(found.unconfirmed.begin(), found.unconfirmed.end(),
                                        [](const std::string& job) { return !job.empty(); });
}

}  // namespace

absl::Status ShowNetworkBest(const Globals& globals, const NetworkWords& words, double tolerance,
                             const std::string& report) {
  HONE_RETURN_IF_ERROR(CheckReportPath(report));
  HONE_ASSIGN_OR_RETURN(const NetworkArgument network, ReadNetwork(globals, words));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->TargetKey());
  HONE_ASSIGN_OR_RETURN(const NetworkBests found, LookUp(*session, network, target, tolerance));
  const absl::Status result =
      CheckNetworkKnown(network, found.unknown.size(), target, tolerance,
                        FindRunningJob(*session, found.unknown, target, tolerance));
  if (!report.empty()) {
    HONE_RETURN_IF_ERROR(
        WriteReport(MakeReport(network, target, found.bests, /*job=*/nullptr), report));
  }
  if (globals.json) return PrintJson(BestsJson(network, found, target), result);
  // If nothing is known, the error says all that there is to say.
  if (KnowsAnything(found)) Print(network, found, target);
  return result;
}

}  // namespace hone::cli

#include "client/cli/output/network_output.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/output/format.h"
#include "client/cli/output/terminal.h"
#include "client/cli/suggested_command.h"
#include "client/cli/tune/schedule_report.h"
#include "common/base/counted.h"
#include "common/ir/signature.h"
#include "common/record/processes.h"

namespace hone::cli {
namespace {

double Occurrences(const client::NetworkTaskProgress& task) {
  return std::accumulate(task.weights.begin(), task.weights.end(), 0.0);
}

std::string StateText(const client::NetworkTaskProgress& task, bool ended) {
  if (!task.error.empty()) return "failed";  // TaskErrors explains it
  if (task.state.empty()) return task.confirmed ? "known" : ended ? "not started" : "waiting";
  // If the time of the network's job is over, it cancels the jobs of its tasks.
  if (!task.confirmed) return ended && task.state == "cancelled" ? "not confirmed" : task.state;
  return task.disturbed ? "disturbed" : "confirmed";
}

Json LatencyOrNull(double nanoseconds) {
  return nanoseconds > 0 ? Json(nanoseconds) : Json(nullptr);
}

}  // namespace

std::string DescribeJob(const client::Job& job) {
  if (!job.network.has_value()) return ir::SignatureOfText(job.workload);
  const client::NetworkProgress& network = *job.network;
  return absl::StrCat("network", network.name.empty() ? "" : " ", network.name, ", ",
                      Counted(network.task_count, "task"));
}

std::string DescribeJobAndKind(const client::Job& job) {
  return absl::StrCat(job.spec.revalidate > 0 ? "revalidation of "
                      : IsCheck(job.spec)     ? "check of "
                      : job.spec.unpublished  ? "run of "
                                              : "",
                      DescribeJob(job));
}

bool AllConfirmed(const client::NetworkProgress& network) {
  return std::all_of(network.tasks.begin(), network.tasks.end(),
                     [](const client::NetworkTaskProgress& task) { return task.confirmed; });
}

std::string WithoutKernelText(const client::NetworkProgress& network) {
  const int64_t without = absl::c_count_if(
      network.tasks, [](const client::NetworkTaskProgress& task) { return !task.confirmed; });
  return absl::StrCat(without, " of ", network.tasks.size(), " tasks have no confirmed kernel");
}

std::string SumText(const client::NetworkProgress& network) {
  return MarkUnconfirmed(FormatLatency(network.latency_ns),
                         client::LatencyIsConfirmed(network).value_or(false));
}

Table TaskTable(const client::NetworkProgress& network, bool ended) {
  Table table({Right("task"), Left("job"), Right("times"), Right("trials"), Right("latency"),
               Right("of all"), Right("GFLOP/s"), Right("speed-up"), Left("state"),
               Left("workload")});
  std::vector<size_t> order(network.tasks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto part = [&](size_t i) {
    return Occurrences(network.tasks[i]) * network.tasks[i].latency_ns;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return part(a) > part(b); });
  for (const size_t i : order) {
    const client::NetworkTaskProgress& task = network.tasks[i];
    const bool confirmed = client::LatencyIsConfirmed(task);
    table.AddRow({absl::StrCat(i), task.job.empty() ? "-" : task.job,
                  absl::StrFormat("%g", Occurrences(task)), absl::StrCat(task.trials),
                  MarkUnconfirmed(FormatLatency(task.latency_ns), confirmed),
                  FormatShare(part(i), network.latency_ns),
                  MarkUnconfirmed(FormatGflops(task.gflops), confirmed),
                  FormatSpeedUp(task.default_latency_ns, task.latency_ns), StateText(task, ended),
                  ir::SignatureOfText(task.workload)});
  }
  return table;
}

std::vector<std::string> TaskErrors(const client::NetworkProgress& network) {
  std::vector<std::pair<std::string, std::vector<std::string>>> tasks_of_errors;
  for (size_t i = 0; i < network.tasks.size(); ++i) {
    const client::NetworkTaskProgress& task = network.tasks[i];
    if (task.error.empty()) continue;
    const auto same = std::find_if(tasks_of_errors.begin(), tasks_of_errors.end(),
                                   [&](const auto& each) { return each.first == task.error; });
    auto& each = same == tasks_of_errors.end()
                     ? tasks_of_errors.emplace_back(task.error, std::vector<std::string>())
                     : *same;
    each.second.push_back(absl::StrCat(i));
  }
  std::vector<std::string> texts;
  for (const auto& [error, tasks] : tasks_of_errors) {
    texts.push_back(absl::StrCat(tasks.size() == 1 ? "task " : "tasks ", absl::StrJoin(tasks, ", "),
                                 " failed: ", WithRepeatedOptions(error)));
  }
  return texts;
}

std::string NoteBesideErrors(const client::Job& job) {
  if (!job.network.has_value()) return job.note;
  for (const client::NetworkTaskProgress& task : job.network->tasks) {
    const size_t error = task.error.empty() ? std::string::npos : job.note.find(task.error);
    if (error == std::string::npos) continue;
    const size_t clause = job.note.rfind("; ", error);
    return clause == std::string::npos ? "" : job.note.substr(0, clause);
  }
  return job.note;
}

void PrintTasks(const client::NetworkProgress& network, bool ended) {
  TaskTable(network, ended).Print();
  const int64_t disturbed = absl::c_count_if(
      network.tasks, [](const client::NetworkTaskProgress& task) { return task.disturbed; });
  if (disturbed > 0) PrintWrapped(DisturbedTasksText(disturbed));
  for (const std::string& text : TaskErrors(network)) PrintWrapped(text);
}

std::string DisturbedTasksText(int64_t disturbed) {
  return absl::StrCat("other work disturbed every process that measured the ",
                      disturbed == 1 ? "best" : "bests", " of ", Counted(disturbed, "task"), ": ",
                      disturbed == 1 ? "its latency" : "their latencies",
                      ", marked with ~, may be too high, and another candidate may be faster");
}

std::string LessCertainText(absl::Span<const std::optional<client::Best>> bests) {
  const int64_t fewer =
      std::count_if(bests.begin(), bests.end(), [](const std::optional<client::Best>& best) {
        return best.has_value() && record::ProcessesOf(best->record.result) < record::kProcesses;
      });
  if (fewer == 0) return "";
  return absl::StrCat("the ", fewer == 1 ? "best" : "bests", " of ", Counted(fewer, "task"),
                      fewer == 1 ? " was" : " were",
                      " measured in fewer than three processes, so that ",
                      fewer == 1 ? "its latency is" : "their latencies are", " less certain");
}

Json ToJson(const client::NetworkProgress& network) {
  Json tasks = Json::array();
  for (const client::NetworkTaskProgress& task : network.tasks) {
    tasks.push_back({{"workload", task.workload},
                     {"workload_digest", task.workload_digest},
                     {"operator", task.op},
                     {"weight", Occurrences(task)},
                     {"weights", task.weights},
                     {"job", task.job},
                     {"state", task.state},
                     {"trials", task.trials},
                     {"seconds", task.seconds},
                     {"latency_ns", LatencyOrNull(task.latency_ns)},
                     {"default_latency_ns", LatencyOrNull(task.default_latency_ns)},
                     {"confirmed", client::LatencyIsConfirmed(task)},
                     {"disturbed", task.disturbed},
                     {"gflops", task.gflops},
                     {"peak_gflops", task.peak_gflops},
                     {"error", task.error}});
  }
  Json estimates = Json::array();
  for (const client::NetworkEstimate& estimate : network.estimates) {
    estimates.push_back({{"wall_s", static_cast<double>(estimate.wall_ms) / 1e3},
                         {"trials", estimate.trials},
                         {"latency_ns", estimate.latency_ns}});
  }
  const std::optional<bool> confirmed = client::LatencyIsConfirmed(network);
  return {{"name", network.name},
          {"task_count", network.task_count},
          {"latency_ns", LatencyOrNull(network.latency_ns)},
          {"confirmed", confirmed.has_value() ? Json(*confirmed) : Json(nullptr)},
          {"default_latency_ns", LatencyOrNull(network.default_latency_ns)},
          {"tasks", std::move(tasks)},
          {"estimates", std::move(estimates)}};
}

}  // namespace hone::cli

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
#include "client/cli/output/json_output.h"
#include "client/cli/output/terminal.h"
#include "client/cli/suggested_command.h"
#include "common/base/counted.h"
#include "common/ir/workload.h"
#include "common/record/processes.h"

namespace hone::cli {
namespace {

double Occurrences(const v1::NetworkTaskProgress& task) {
  return std::accumulate(task.weights().begin(), task.weights().end(), 0.0);
}

std::string StateText(const v1::NetworkTaskProgress& task, bool ended) {
  if (!task.error().empty()) return "failed";  // TaskErrors explains it
  if (task.state() == v1::JOB_STATE_UNSPECIFIED) {
    return task.confirmed() ? "known" : ended ? "not started" : "waiting";
  }
  if (task.confirmed()) return task.disturbed() ? "disturbed" : "confirmed";
  // If the time of the network's job is over, it cancels the jobs of its tasks.
  return ended && task.state() == v1::JOB_STATE_CANCELLED ? "not confirmed"
                                                          : client::JobStateName(task.state());
}

Json LatencyOrNull(double nanoseconds) {
  return nanoseconds > 0 ? Json(nanoseconds) : Json(nullptr);
}

}  // namespace

std::string DescribeJob(const v1::Job& job) {
  if (!job.has_network()) return ir::SignatureOfText(job.workload());
  const v1::NetworkProgress& network = job.network();
  return absl::StrCat("network", network.name().empty() ? "" : " ", network.name(), ", ",
                      Counted(network.task_count(), "task"));
}

std::string DescribeJobAndKind(const v1::Job& job) {
  return absl::StrCat(job.request().revalidate() > 0 ? "revalidation of "
                      : job.is_check()               ? "check of "
                      : job.request().unpublished()  ? "run of "
                                                     : "",
                      DescribeJob(job));
}

bool AllConfirmed(const v1::NetworkProgress& network) {
  return std::all_of(network.tasks().begin(), network.tasks().end(),
                     [](const v1::NetworkTaskProgress& task) { return task.confirmed(); });
}

std::string WithoutKernelText(const v1::NetworkProgress& network) {
  const int64_t without = absl::c_count_if(
      network.tasks(), [](const v1::NetworkTaskProgress& task) { return !task.confirmed(); });
  return absl::StrCat(without, " of ", network.tasks_size(), " tasks have no confirmed kernel");
}

absl::Status CheckTasks(const v1::Job& job, absl::string_view command) {
  if (!job.has_network() || AllConfirmed(job.network())) return absl::OkStatus();
  const bool limited = job.request().max_time_ms() > 0;
  const bool failed =
      absl::c_any_of(job.network().tasks(), [limited](const v1::NetworkTaskProgress& task) {
        return !task.confirmed() && !task.error().empty() && (task.trials() > 0 || !limited);
      });
  const std::string text =
      absl::StrCat(WithoutKernelText(job.network()), "; ", command, " tunes them");
  if (failed) return absl::AbortedError(text);
  PrintWrapped(stderr, text);
  return absl::OkStatus();
}

std::string SumText(const v1::NetworkProgress& network) {
  return MarkUnconfirmed(FormatLatency(network.latency_ns()), network.confirmed());
}

Table TaskTable(const v1::NetworkProgress& network, bool ended) {
  Table table({Right("task"), Left("job"), Right("times"), Right("trials"), Right("latency"),
               Right("of all"), Right("GFLOP/s"), Right("speed-up"), Left("state"),
               Left("workload")});
  std::vector<int> order(network.tasks_size());
  std::iota(order.begin(), order.end(), 0);
  const auto part = [&](int i) {
    return Occurrences(network.tasks(i)) * network.tasks(i).latency_ns();
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return part(a) > part(b); });
  for (const int i : order) {
    const v1::NetworkTaskProgress& task = network.tasks(i);
    const bool confirmed = client::LatencyIsConfirmed(task);
    table.AddRow({absl::StrCat(i), task.job().empty() ? "-" : task.job(),
                  absl::StrFormat("%g", Occurrences(task)), absl::StrCat(task.trials()),
                  MarkUnconfirmed(FormatLatency(task.latency_ns()), confirmed),
                  FormatShare(part(i), network.latency_ns()),
                  MarkUnconfirmed(FormatGflops(task.gflops()), confirmed),
                  FormatSpeedUp(task.default_latency_ns(), task.latency_ns()),
                  StateText(task, ended), ir::SignatureOfText(task.workload())});
  }
  return table;
}

std::vector<std::string> TaskErrors(const v1::NetworkProgress& network) {
  std::vector<std::pair<std::string, std::vector<std::string>>> tasks_of_errors;
  for (int i = 0; i < network.tasks_size(); ++i) {
    const v1::NetworkTaskProgress& task = network.tasks(i);
    if (task.error().empty()) continue;
    const auto same = std::find_if(tasks_of_errors.begin(), tasks_of_errors.end(),
                                   [&](const auto& each) { return each.first == task.error(); });
    auto& each = same == tasks_of_errors.end()
                     ? tasks_of_errors.emplace_back(task.error(), std::vector<std::string>())
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

std::string NoteBesideErrors(const v1::Job& job) {
  if (!job.has_network()) return job.note();
  for (const v1::NetworkTaskProgress& task : job.network().tasks()) {
    const size_t error = task.error().empty() ? std::string::npos : job.note().find(task.error());
    if (error == std::string::npos) continue;
    const size_t clause = job.note().rfind("; ", error);
    return clause == std::string::npos ? "" : job.note().substr(0, clause);
  }
  return job.note();
}

void PrintTasks(const v1::NetworkProgress& network, bool ended) {
  TaskTable(network, ended).Print();
  const int64_t disturbed = absl::c_count_if(
      network.tasks(), [](const v1::NetworkTaskProgress& task) { return task.disturbed(); });
  if (disturbed > 0) PrintWrapped(DisturbedTasksText(disturbed));
  for (const std::string& text : TaskErrors(network)) PrintWrapped(text);
}

std::string DisturbedTasksText(int64_t disturbed) {
  return absl::StrCat("other work disturbed every process that measured the ",
                      disturbed == 1 ? "best" : "bests", " of ", Counted(disturbed, "task"), ": ",
                      disturbed == 1 ? "its latency" : "their latencies",
                      ", marked with ~, may be too high, and another candidate may be faster");
}

std::string LessCertainText(absl::Span<const std::optional<v1::Best>> bests) {
  const int64_t fewer =
      std::count_if(bests.begin(), bests.end(), [](const std::optional<v1::Best>& best) {
        return best.has_value() && best->processes() < record::kProcesses;
      });
  if (fewer == 0) return "";
  return absl::StrCat("the ", fewer == 1 ? "best" : "bests", " of ", Counted(fewer, "task"),
                      fewer == 1 ? " was" : " were",
                      " measured in fewer than three processes, so that ",
                      fewer == 1 ? "its latency is" : "their latencies are", " less certain");
}

Json ToJson(const v1::NetworkProgress& network) {
  Json tasks = Json::array();
  for (const v1::NetworkTaskProgress& task : network.tasks()) {
    Json& json = tasks.emplace_back(FieldsJson(task, {"workload", "workload_digest", "operator"}));
    json["weight"] = Occurrences(task);
    json.update(FieldsJson(task, {"weights", "job", "state", "trials", "seconds"}));
    json["latency_ns"] = LatencyOrNull(task.latency_ns());
    json["default_latency_ns"] = LatencyOrNull(task.default_latency_ns());
    json["confirmed"] = client::LatencyIsConfirmed(task);
    json.update(FieldsJson(task, {"disturbed", "gflops", "peak_gflops", "error"}));
  }
  Json estimates = Json::array();
  for (const v1::NetworkEstimate& estimate : network.estimates()) {
    estimates.push_back({{"wall_s", static_cast<double>(estimate.wall_ms()) / 1e3},
                         {"trials", estimate.trials()},
                         {"latency_ns", estimate.latency_ns()}});
  }
  // A job that has not begun sends its tasks without knowing anything of them.
  const bool is_known = network.has_confirmed() || network.tasks_size() > 0;
  return {{"name", network.name()},
          {"task_count", network.task_count()},
          {"latency_ns", LatencyOrNull(network.latency_ns())},
          {"confirmed", is_known ? Json(network.confirmed()) : Json(nullptr)},
          {"default_latency_ns", LatencyOrNull(network.default_latency_ns())},
          {"tasks", std::move(tasks)},
          {"estimates", std::move(estimates)}};
}

}  // namespace hone::cli

#include <algorithm>
#include <optional>
#include <vector>

#include "common/base/status_macros.h"
#include "common/record/processes.h"
#include "server/confirm/finalist.h"
#include "server/job/network/network_job.h"

namespace hone::job {
namespace {

constexpr int64_t kUnlimitedBatch = 8;  // trials at a time without a limit of trials
constexpr double kNoticeable = 0.001;   // the improvement that renews the patience
// At most this many records of a task are read, the newest ones. This is enough to see that a task
// is well known, and includes the last confirmation.
constexpr int kMostRecords = 1000;

// Returns the newest records of a task in the store.
absl::StatusOr<std::vector<record::Record>> ReadNewest(const JobSpec& spec,
                                                       const std::string& digest,
                                                       store::Store& store) {
  HONE_ASSIGN_OR_RETURN(std::vector<record::Record> records,
                        store.Query({.workload_digest = digest,
                                     .target = spec.target_key,
                                     .page_size = kMostRecords,
                                     .newest_first = true,
                                     .quarantine = store::QuarantineFilter::kNone}));
  std::erase_if(records,
                [&](const record::Record& record) { return record.tolerance != spec.tolerance; });
  return records;
}

absl::StatusOr<store::BestRow> StoredBest(const JobSpec& spec, const JobServices& services,
                                          const NetworkTaskState& task) {
  return services.store->LookupBest({.workload_digest = task.workload_digest,
                                     .target = spec.target_key,
                                     .tolerance = spec.tolerance});
}

void ShowBest(const record::Record& best, NetworkTaskState& task) {
  task.latency_ns = record::SteadyLatencyNs(best.result);
  task.gflops = BestOf(best, task.flops, /*peak_gflops=*/0).gflops;
  task.confirmed = true;
  task.disturbed = record::IsOnlyDisturbed(best.result);
}

absl::StatusOr<NetworkTaskState> NewTask(const JobSpec& spec, const std::string& workload,
                                         const JobServices& services) {
  HONE_ASSIGN_OR_RETURN(const WorkloadInfo info, services.environment->Describe(workload));
  NetworkTaskState task{.workload_digest = info.digest, .op = info.op, .flops = info.flops};
  HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> records,
                        ReadNewest(spec, info.digest, *services.store));
  const std::optional<fleet::Capabilities> device = services.fleet->DeviceOf(spec.target_key);
  if (info.has_fma_peak && device.has_value()) task.peak_gflops = device->peak_gflops;
  StoredDefault default_schedule;
  for (const record::Record& record : records) default_schedule.Add(record);
  if (const std::optional<record::Record> confirmed = default_schedule.Confirmed()) {
    task.default_latency_ns = record::SteadyLatencyNs(confirmed->result);
  }
  const absl::StatusOr<store::BestRow> best = StoredBest(spec, services, task);
  if (absl::IsNotFound(best.status())) return task;
  HONE_RETURN_IF_ERROR(best.status());
  task.earlier_trials =
      std::count_if(records.begin(), records.end(),
                    [](const record::Record& record) { return record.policy.name == "screen"; });
  ShowBest(best->record, task);
  task.known_latency_ns = task.latency_ns;
  task.curve = {{0, task.latency_ns}};
  return task;
}

}  // namespace

absl::StatusOr<NetworkState> NewNetworkState(const JobSpec& spec, const JobServices& services) {
  NetworkState state;
  for (const NetworkTaskSpec& task : spec.network->tasks) {
    HONE_ASSIGN_OR_RETURN(state.tasks.emplace_back(), NewTask(spec, task.workload, services));
  }
  ReopenTasks(*spec.network, state);
  return state;
}

void ReopenTasks(const NetworkSpec& spec, NetworkState& state) {
  for (NetworkTaskState& task : state.tasks) {
    task.closed = spec.only_missing && task.known_latency_ns > 0;
  }
}

void ShowStoredBests(const JobSpec& spec, const JobServices& services, NetworkState& state) {
  for (NetworkTaskState& task : state.tasks) {
    // Another job may have published a faster one than the task's job.
    const absl::StatusOr<store::BestRow> best = StoredBest(spec, services, task);
    if (best.ok()) ShowBest(best->record, task);
  }
}

int64_t TrialsAtATime(const JobSpec& spec, const JobOptions& options) {
  if (spec.max_trials == 0) return std::min<int64_t>(kUnlimitedBatch, options.max_batch);
  const int64_t share = spec.max_trials / static_cast<int64_t>(spec.network->tasks.size());
  const int64_t smallest = std::clamp<int64_t>(share, 1, options.min_batch);
  return std::clamp<int64_t>(share / 8, smallest, options.max_batch);
}

void UpdateTask(const JobSnapshot& job, int64_t in_flight, int64_t batch, NetworkTaskState& task) {
  task.state = std::string(JobStateName(job.state));
  task.error = job.error;
  task.trials = job.trials;
  task.granted = job.trials + in_flight;
  // A default that was measured once may have been disturbed, and is compared with nothing.
  if (job.default_schedule.has_value() &&
      record::ProcessesOf(job.default_schedule->record.result) >= record::kProcesses) {
    task.default_latency_ns = record::SteadyLatencyNs(job.default_schedule->record.result);
  }
  if (!job.best.has_value()) return;
  const double latency = record::SteadyLatencyNs(job.best->record.result);
  const bool confirmed = record::IsConfirmed(job.best->record);
  if (confirmed || task.latency_ns == 0 || latency < task.latency_ns) {
    task.latency_ns = latency;
    task.confirmed = confirmed;
    task.disturbed = confirmed && record::IsOnlyDisturbed(job.best->record.result);
    task.gflops = job.best->gflops;
    task.peak_gflops = job.best->peak_gflops;
  }
  const int64_t last = task.curve.empty() ? 0 : task.curve.back().trials;
  if (task.trials >= last + batch || (task.trials > last && in_flight == 0)) {
    task.curve.push_back({task.trials, task.latency_ns});
  }
}

void AddEstimate(NetworkEstimate now, int64_t batch, NetworkState& state) {
  std::vector<NetworkEstimate>& estimates = state.estimates;
  if (!(now.latency_ns > 0)) return;
  if (!estimates.empty() && estimates.back().latency_ns == now.latency_ns &&
      now.trials < estimates.back().trials + batch) {
    return;
  }
  if (estimates.size() >= kMostEstimates) {  // keeps every second one, and the last
    size_t kept = 0;
    for (size_t i = 0; i < estimates.size(); i += 2) estimates[kept++] = estimates[i];
    estimates[kept++] = estimates.back();
    estimates.resize(kept);
  }
  estimates.push_back(now);
}

bool HasLostPatience(const NetworkState& state, int64_t patience) {
  const std::vector<NetworkEstimate>& estimates = state.estimates;
  if (patience == 0 || estimates.empty()) return false;
  const int64_t since = estimates.back().trials - patience;
  const auto after = std::find_if(estimates.begin(), estimates.end(),
                                  [&](const NetworkEstimate& e) { return e.trials > since; });
  if (after == estimates.begin()) return false;
  return estimates.back().latency_ns > std::prev(after)->latency_ns * (1 - kNoticeable);
}

}  // namespace hone::job

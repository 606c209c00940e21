#include "server/job/actor/job_types.h"

#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "server/fleet/lease_book.h"

namespace hone::job {
namespace {

absl::string_view HostOf(absl::string_view server) { return server.substr(0, server.find('/')); }

double WeightedSum(const NetworkSpec& spec, const NetworkState& state,
                   double NetworkTaskState::* latency_ns) {
  double sum = 0;
  if (state.tasks.size() != spec.tasks.size()) return 0;
  for (size_t i = 0; i < state.tasks.size(); ++i) {
    const std::vector<double>& weights = spec.tasks[i].weights;
    const double latency = state.tasks[i].*latency_ns;
    if (!(latency > 0)) return 0;
    sum += latency * std::accumulate(weights.begin(), weights.end(), 0.0);
  }
  return sum;
}

constexpr std::pair<JobState, const char*> kNames[] = {
    {JobState::kPending, "pending"},       {JobState::kRunning, "running"},
    {JobState::kConfirming, "confirming"}, {JobState::kDone, "done"},
    {JobState::kCancelled, "cancelled"},   {JobState::kFailed, "failed"},
};

}  // namespace

std::string ThisBoot() {
  static const std::string& boot = *new std::string([] {
    const absl::StatusOr<std::string> id = ReadFile("/proc/sys/kernel/random/boot_id");
    return id.ok() ? std::string(absl::StripAsciiWhitespace(*id)) : std::string();
  }());
  return boot;
}

bool EndedByItself(const RiskyStep& step, absl::string_view server, absl::string_view boot) {
  if (step.server == server) return false;
  const bool same_host = HostOf(step.server) == HostOf(server);
  return !same_host || step.boot == boot;
}

int CountedCrashes(const JobSnapshot& job) {
  std::set<absl::string_view> hosts;
  for (const std::string& server : job.crashed_servers) hosts.insert(HostOf(server));
  return static_cast<int>(job.crashed_servers.size()) - (hosts.size() > 1 ? 1 : 0);
}

std::vector<TaskProgress> ProgressOf(const NetworkSpec& spec, const NetworkState& state) {
  std::vector<TaskProgress> tasks;
  for (size_t i = 0; i < state.tasks.size(); ++i) {
    const NetworkTaskState& task = state.tasks[i];
    tasks.push_back({.weights = spec.tasks[i].weights,
                     .op = task.op,
                     .flops = task.flops,
                     .latency_ns = task.latency_ns,
                     .curve = task.curve,
                     .earlier_trials = task.earlier_trials,
                     .trials = task.trials,
                     .granted = task.granted,
                     .seconds = task.seconds,
                     .open = !task.closed});
  }
  return tasks;
}

Objective ObjectiveOf(const NetworkSpec& spec) {
  return {.kind = ObjectiveFromName(spec.objective).value_or(ObjectiveKind::kLatency),
          .limits_ns = spec.limits_ns,
          .references_ns = spec.references_ns,
          .network_weights = spec.network_weights,
          .early_stop = spec.early_stop};
}

double NetworkLatency(const NetworkSpec& spec, const NetworkState& state) {
  return WeightedSum(spec, state, &NetworkTaskState::latency_ns);
}

double DefaultNetworkLatency(const NetworkSpec& spec, const NetworkState& state) {
  return WeightedSum(spec, state, &NetworkTaskState::default_latency_ns);
}

std::string TaskJobId(absl::string_view network_job, size_t task) {
  return absl::StrCat(network_job, ".", task);
}

int PriorityOf(absl::string_view name) {
  if (name == "high") return fleet::kHighPriority;
  return name == "low" ? fleet::kLowPriority : fleet::kNormalPriority;
}

absl::string_view JobStateName(JobState state) {
  for (const auto& [value, name] : kNames) {
    if (value == state) return name;
  }
  return "";
}

absl::StatusOr<JobState> JobStateFromName(absl::string_view name) {
  for (const auto& [value, text] : kNames) {
    if (text == name) return value;
  }
  return absl::InvalidArgumentError(absl::StrCat("no job state is called '", name, "'"));
}

bool HasEnded(JobState state) {
  return state == JobState::kDone || state == JobState::kCancelled || state == JobState::kFailed;
}

void Reopen(JobSnapshot& job) {
  job.state = JobState::kPending;
  job.cancelled = false;
  job.error.clear();
  job.is_resumable = false;
  job.note.clear();
  job.unconfirmed = false;
}

Best BestOf(const record::Record& record, double flops, double peak_gflops) {
  Best best{.record = record};
  const double latency = record::SteadyLatencyNs(record.result);
  if (!(latency > 0)) return best;
  best.gflops = flops / latency;
  best.peak_gflops = peak_gflops;
  return best;
}

}  // namespace hone::job

#include "server/service/job_convert.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/record/message_fields.h"
#include "common/record/processes.h"
#include "common/record/proto_convert.h"
#include "common/target/target.h"
#include "server/job/scheduler/task_scheduler.h"
#include "server/tuner/feature/machine.h"

namespace hone::service {
namespace {

std::string Describe(const record::Environment& e) {
  return absl::StrCat(e.cpu, ", ", e.cores, " cores, ", e.isa, ", ", e.os, ", governor ",
                      e.governor.empty() ? "unknown" : e.governor, ", ", e.compiler);
}

// Copies the plain fields of a struct (job_types.h) that the message has under the same names.
class SameFields {
 public:
  explicit SameFields(google::protobuf::Message& message) : message_(message), write_(message) {}

  template <typename T>
  void operator()(const record::Field& field, const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string> ||
                  std::is_same_v<T, absl::Duration>) {
      const auto* found = message_.GetDescriptor()->FindFieldByName(field.proto);
      // The message names a state by its number.
      if (found == nullptr || found->enum_type() != nullptr) return;
      write_(field, value);
    }
  }

 private:
  const google::protobuf::Message& message_;
  record::MessageWriter write_;
};
template <typename T>
void Show(const T& value, google::protobuf::Message& message) {
  SameFields visit(message);
  VisitFields(value, visit);
}

v1::JobPhase PhaseToProto(const job::JobPhase& phase) {
  static_assert(static_cast<int>(job::PhaseKind::kWaitingForKernel) ==
                v1::JobPhase::KIND_WAITING_FOR_KERNEL);
  static_assert(static_cast<int>(job::PhaseKind::kWaitingForProposals) ==
                v1::JobPhase::KIND_WAITING_FOR_PROPOSALS);
  static_assert(static_cast<int>(job::PhaseKind::kWaitingForSpace) ==
                v1::JobPhase::KIND_WAITING_FOR_SPACE);
  v1::JobPhase message;
  Show(phase, message);
  message.set_kind(static_cast<v1::JobPhase::Kind>(phase.kind));
  return message;
}

// Whether the default schedule was measured in as many processes as a best (Job.default_confirmed).
bool DefaultIsConfirmed(const job::JobSnapshot& job) {
  if (!job.default_schedule) return false;
  const bool is_best = job.best && record::IsConfirmed(job.best->record) &&
                       job.best->record.is_default && job.best->record.job_id == job.id;
  if (is_best) return record::LatencyIsConfirmed(job.best->record);
  return record::ProcessesOf(job.default_schedule->record.result) >= record::kProcesses;
}

// Fills the figures of a record that a message shows.
template <typename Message>
void ShowRecord(const record::Record& record, Message& message) {
  *message.mutable_record() = record::ToProto(record);
  message.set_latency_ns(record::SteadyLatencyNs(record.result));
  message.set_confirmed(record::IsConfirmed(record));
  message.set_disturbed(record::IsOnlyDisturbed(record.result));
}

struct Peaks {
  double gflops = 0;  // 0: unknown
  double read_gbps = 0;
};

Peaks OfWorkers(const fleet::Fleet& fleet, const std::string& target) {
  const std::optional<fleet::Capabilities> device = fleet.DeviceOf(target);
  if (!device.has_value()) return {};
  return {.gflops = device->peak_gflops, .read_gbps = device->read_gbps};
}

void Raise(const v1::Best& best, Peaks& peaks) {
  peaks.gflops = std::max(peaks.gflops, best.peak_gflops());
  peaks.read_gbps = std::max(peaks.read_gbps, best.read_gbps());
}

void Set(const Peaks& peaks, v1::Best& best) {
  if (best.peak_gflops() > 0) best.set_peak_gflops(peaks.gflops);
  best.set_read_gbps(peaks.read_gbps);
}

constexpr char kSpeedup[] = "speedup";
constexpr char kEarlyStop[] = "early-stop";
constexpr char kLatencyLimits[] = "latency-limits";

// The largest weight of a network, so that the mean of many stays a number.
constexpr double kMostWeight = 1e6;

bool IsAmount(double value) { return std::isfinite(value) && value >= 0; }

absl::Status CheckWeights(const v1::NetworkTask& task, int networks, const std::string& field) {
  bool occurs = false;
  for (const double weight : task.weights()) {
    if (!IsAmount(weight)) return FieldError(field, "a weight is not a number of occurrences");
    occurs = occurs || weight > 0;
  }
  if (!occurs) return FieldError(field, "the task occurs in no network");
  if (task.weights_size() <= std::max(1, networks)) return absl::OkStatus();
  return FieldError(field, absl::StrCat(task.weights_size(), " weights for ", std::max(1, networks),
                                        " networks"));
}

absl::Status ReadNetworks(const v1::NetworkRequest& request, job::NetworkSpec& spec) {
  if (request.networks_size() > kMostNetworks) {
    return FieldError("network.networks", absl::StrCat("more than ", kMostNetworks));
  }
  for (const v1::Network& network : request.networks()) {
    if (!IsAmount(network.latency_limit_ns()) || !IsAmount(network.reference_ns())) {
      return FieldError("network.networks", "a latency is not a number of nanoseconds");
    }
    if (spec.objective == kSpeedup && network.reference_ns() == 0) {
      return FieldError("network.networks.reference_ns", "missing for the objective speedup");
    }
    if (spec.objective == kLatencyLimits && network.latency_limit_ns() == 0) {
      return FieldError("network.networks.latency_limit_ns",
                        "missing for the objective latency-limits");
    }
    if (!IsAmount(network.weight()) || network.weight() > kMostWeight) {
      return FieldError("network.networks.weight",
                        absl::StrCat("not a number from 0 to ", kMostWeight));
    }
    spec.network_weights.push_back(network.weight() == 0 ? 1 : network.weight());
    spec.network_names.push_back(network.name());
    spec.limits_ns.push_back(network.latency_limit_ns());
    spec.references_ns.push_back(network.reference_ns());
  }
  if (absl::c_all_of(spec.network_weights, [](double weight) { return weight == 1; })) {
    spec.network_weights.clear();
  } else if (spec.objective != kSpeedup) {
    return FieldError("network.networks.weight", "is for the objective speedup");
  }
  if (request.networks().empty() &&
      (spec.objective == kSpeedup || spec.objective == kLatencyLimits)) {
    return FieldError("network.networks",
                      absl::StrCat("missing for the objective ", spec.objective));
  }
  return absl::OkStatus();
}

absl::Status ReadTasks(const v1::NetworkRequest& request, const job::TaskEnvironment& environment,
                       job::NetworkSpec& spec) {
  if (request.tasks().empty()) return FieldError("network.tasks", "missing");
  if (request.tasks_size() > kMostNetworkTasks) {
    return FieldError("network.tasks", absl::StrCat("more than ", kMostNetworkTasks));
  }
  std::map<std::string, int> known;  // by digest
  for (int i = 0; i < request.tasks_size(); ++i) {
    const v1::NetworkTask& task = request.tasks(i);
    const std::string field = absl::StrCat("network.tasks[", i, "]");
    HONE_RETURN_IF_ERROR(CheckWeights(task, request.networks_size(), field));
    absl::StatusOr<job::WorkloadInfo> workload = environment.Describe(task.workload());
    if (!workload.ok()) return FieldError(field, workload.status().message());
    const auto [first, is_new] = known.try_emplace(workload->digest, i);
    if (!is_new) {
      return FieldError(
          field, absl::StrCat("task ", first->second, " has the same workload; add their weights"));
    }
    spec.tasks.push_back(
        {std::move(workload->text), {task.weights().begin(), task.weights().end()}});
  }
  return absl::OkStatus();
}

// Checks the request of a job that waits for what other programs propose.
absl::Status CheckExternal(const v1::CreateJobRequest& request) {
  if (request.has_network()) {
    return FieldError("strategy", "external is for the job of an operator, not for networks");
  }
  if (request.max_time_ms() > 0 || request.revalidate() > 0) return absl::OkStatus();
  return FieldError("max_time_ms",
                    "missing; with the strategy external, a job waits for proposals "
                    "until its time is over");
}

// Whether the sum of the tasks' latencies is confirmed.
bool IsConfirmed(const job::NetworkState& state) {
  return std::all_of(state.tasks.begin(), state.tasks.end(), [](const job::NetworkTaskState& task) {
    return task.confirmed && !task.disturbed;
  });
}

// Converts the networks of a request, with defaults filled in and workloads in their printed form.
// REQUIRES: the request has networks. InvalidArgument: a field violates tuning.proto or the limits
// above; the message names the field.
absl::StatusOr<job::NetworkSpec> ToNetworkSpec(const v1::CreateJobRequest& request,
                                               const job::TaskEnvironment& environment) {
  if (!request.workload().empty())
    return FieldError("workload", "cannot be combined with a network");
  if (!request.workload_digest().empty()) {
    return FieldError("workload_digest", "cannot be combined with a network");
  }
  if (!request.space().empty())
    return FieldError("space", "not supported for networks, because each task has its own space");
  if (request.revalidate() != 0) return FieldError("revalidate", "not supported for networks");
  if (request.unpublished())
    return FieldError("unpublished",
                      "not supported for networks, which always publish their bests");
  const v1::NetworkRequest& network = request.network();
  if (network.patience() < 0) return FieldError("network.patience", "negative");
  if (network.early_stop() < 0) return FieldError("network.early_stop", "negative");
  job::NetworkSpec spec{.name = network.name(),
                        .patience = network.patience(),
                        .early_stop = network.early_stop(),
                        .only_missing = network.only_missing()};
  HONE_ASSIGN_OR_RETURN(spec.objective, Choose("network.objective", network.objective(), "latency",
                                               job::ObjectiveNames()));
  if (spec.objective == kEarlyStop && spec.early_stop == 0) {
    return FieldError("network.early_stop", "missing for the objective early-stop");
  }
  HONE_ASSIGN_OR_RETURN(spec.scheduler,
                        Choose("network.scheduler", network.scheduler(), job::kDefaultTaskScheduler,
                               job::TaskSchedulerNames()));
  HONE_RETURN_IF_ERROR(ReadNetworks(network, spec));
  HONE_RETURN_IF_ERROR(ReadTasks(network, environment, spec));
  return spec;
}

// Without the tasks.
v1::NetworkRequest RequestToProto(const job::NetworkSpec& spec) {
  v1::NetworkRequest message;
  Show(spec, message);
  for (size_t j = 0; j < spec.network_names.size(); ++j) {
    v1::Network& network = *message.add_networks();
    network.set_name(spec.network_names[j]);
    network.set_latency_limit_ns(spec.limits_ns[j]);
    network.set_reference_ns(spec.references_ns[j]);
    network.set_weight(j < spec.network_weights.size() ? spec.network_weights[j] : 1);
  }
  return message;
}

// REQUIRES: it is a job of networks.
v1::NetworkProgress ProgressToProto(const job::JobSnapshot& job) {
  const job::NetworkSpec& spec = *job.spec.network;
  const job::NetworkState state = job.network.value_or(job::NetworkState());
  v1::NetworkProgress message;
  message.set_name(spec.name);
  message.set_task_count(static_cast<int>(spec.tasks.size()));
  message.set_latency_ns(job::NetworkLatency(spec, state));
  message.set_default_latency_ns(job::DefaultNetworkLatency(spec, state));
  if (!state.tasks.empty()) message.set_confirmed(IsConfirmed(state));
  for (size_t i = 0; i < spec.tasks.size(); ++i) {
    v1::NetworkTaskProgress& progress = *message.add_tasks();
    progress.set_workload(spec.tasks[i].workload);
    progress.mutable_weights()->Assign(spec.tasks[i].weights.begin(), spec.tasks[i].weights.end());
    if (i >= state.tasks.size()) continue;  // the job has not begun
    const job::NetworkTaskState& task = state.tasks[i];
    Show(task, progress);
    progress.set_operator_(task.op);
    if (const auto known = job::JobStateFromName(task.state); known.ok()) {
      progress.set_job(job::TaskJobId(job.id, i));
      progress.set_state(service::ToProto(*known));
    }
  }
  for (const job::NetworkEstimate& estimate : state.estimates) {
    Show(estimate, *message.add_estimates());
  }
  return message;
}

}  // namespace

absl::StatusOr<std::string> Choose(absl::string_view field, const std::string& asked,
                                   const std::string& standard,
                                   const std::vector<std::string>& names) {
  if (asked.empty()) return standard;
  if (std::find(names.begin(), names.end(), asked) != names.end()) return asked;
  return FieldError(field, absl::StrCat("there is no '", asked.substr(0, kMaxIdBytes),
                                        "'; there are: ", absl::StrJoin(names, ", ")));
}

std::vector<std::string> AllModelNames(const job::TaskEnvironment& environment) {
  std::vector<std::string> names;
  for (const cost_model::CostModelInfo& info : environment.CostModels()) {
    names.push_back(info.name);
  }
  return names;
}

v1::JobState ToProto(job::JobState state) {
  static_assert(static_cast<int>(job::JobState::kFailed) == v1::JOB_STATE_FAILED);
  return static_cast<v1::JobState>(state);
}

absl::StatusOr<job::JobSpec> ToSpec(const v1::CreateJobRequest& request,
                                    const job::TaskEnvironment& environment) {
  HONE_RETURN_IF_ERROR(CheckLength("request_id", request.request_id()));
  HONE_RETURN_IF_ERROR(CheckLength("target", request.target()));
  if (request.target().empty())
    return FieldError("target", "missing; give \"native\" or the key of a target");
  if (request.workload().empty() && !request.has_network()) {
    return FieldError("workload", "missing");
  }
  if (request.max_trials() < 0) return FieldError("max_trials", "negative");
  if (request.max_time_ms() < 0) return FieldError("max_time_ms", "negative");
  if (request.max_trials() == 0 && request.max_time_ms() == 0) {
    return absl::InvalidArgumentError("a job needs a limit: max_trials or max_time_ms");
  }
  HONE_RETURN_IF_ERROR(CheckTolerance(request.tolerance()));
  if (request.revalidate() < 0 || request.revalidate() > kMaxRevalidated) {
    return FieldError("revalidate",
                      absl::StrCat("not a number of candidates from 0 to ", kMaxRevalidated));
  }
  if (request.revalidate() > 0 && !request.space().empty()) {
    return FieldError("space", "a revalidation uses the stored candidates of every space");
  }
  if (request.revalidate() > 0 && request.unpublished() && request.inputs_digest().empty()) {
    return FieldError("unpublished", "a revalidation publishes its best");
  }
  if (!request.inputs_digest().empty() && !IsSha256(request.inputs_digest())) {
    return FieldError("inputs_digest", "not 64 hex digits");
  }
  job::JobSpec spec{.request_id = request.request_id(),
                    .requested_target = request.target(),
                    .max_trials = request.max_trials(),
                    .max_time = absl::Milliseconds(request.max_time_ms()),
                    .seed = request.seed(),
                    .tolerance = request.tolerance(),
                    .feature_set = request.feature_set(),
                    .revalidate = request.revalidate(),
                    .unpublished = request.unpublished(),
                    .inputs_digest = request.inputs_digest()};
  HONE_ASSIGN_OR_RETURN(
      spec.priority, Choose("priority", request.priority(), "normal", {"low", "normal", "high"}));
  std::vector<std::string> strategies = environment.StrategyNames();
  strategies.push_back(job::kExternalStrategy);
  HONE_ASSIGN_OR_RETURN(spec.strategy, Choose("strategy", request.strategy(),
                                              environment.default_strategy(), strategies));
  if (spec.strategy == job::kExternalStrategy) HONE_RETURN_IF_ERROR(CheckExternal(request));
  if (!spec.feature_set.empty()) {
    HONE_RETURN_IF_ERROR(
        Choose("feature_set", spec.feature_set, "", environment.FeatureSetNames()).status());
  }
  HONE_ASSIGN_OR_RETURN(spec.cost_model,
                        Choose("cost_model", request.cost_model(), environment.default_cost_model(),
                               AllModelNames(environment)));
  const absl::Status fits =
      environment.CreateModel(spec.cost_model, {.feature_set = spec.feature_set}).status();
  // FailedPrecondition means that this build does not have the model. All other errors are about
  // the feature set.
  if (absl::IsFailedPrecondition(fits)) return FieldError("cost_model", fits.message());
  if (!fits.ok()) return FieldError("feature_set", fits.message());
  if (request.has_network()) {
    HONE_ASSIGN_OR_RETURN(spec.network, ToNetworkSpec(request, environment));
    return spec;
  }
  HONE_ASSIGN_OR_RETURN(job::WorkloadInfo workload, environment.Describe(request.workload()));
  spec.workload = std::move(workload.text);
  if (!request.space().empty()) {
    const absl::StatusOr<bool> is_check = environment.CheckSpace(spec.workload, request.space());
    if (!is_check.ok()) return FieldError("space", is_check.status().message());
    spec.is_check = *is_check;
    spec.space = request.space();
  }
  return spec;
}

absl::StatusOr<job::JobSpec> ToSpec(const v1::DraftScheduleRequest& request,
                                    const job::TaskEnvironment& environment) {
  v1::CreateJobRequest job;
  job.set_workload(request.workload());
  job.set_target(kNativeTarget);
  job.set_tolerance(request.tolerance());
  // A job must have a limit. A limit of time leaves the batches at their full size, as the default
  // number of trials of `hone tune` does; a small number of trials would not.
  job.set_max_time_ms(1);
  return ToSpec(job, environment);
}

v1::Best ToProto(const job::Best& best) {
  v1::Best message;
  ShowRecord(best.record, message);
  message.set_processes(record::ProcessesOf(best.record.result));
  Show(best, message);
  return message;
}

v1::Best ToProto(const job::NearestBest& nearest, const job::WorkloadInfo& workload) {
  const record::Record& source = nearest.source.record;
  v1::Best message;
  // The adapted candidate was not measured, so its record has no result.
  *message.mutable_record() = record::ToProto(record::Record{.workload_digest = workload.digest,
                                                             .op = workload.op,
                                                             .target = source.target,
                                                             .tolerance = source.tolerance,
                                                             .candidate = nearest.candidate});
  message.set_workload(workload.text);
  v1::Nearest& from = *message.mutable_nearest();
  from.set_workload(nearest.source.workload);
  from.set_distance(nearest.distance);
  ShowRecord(source, from);
  from.set_gflops(job::BestOf(source, nearest.flops, /*peak_gflops=*/0).gflops);
  return message;
}

v1::Job ToProto(const job::JobSnapshot& snapshot) {
  v1::Job message;
  Show(snapshot, message);
  message.set_state(ToProto(snapshot.state));
  message.set_workload(snapshot.spec.workload);
  message.set_target(snapshot.spec.target_key);
  v1::CreateJobRequest& request = *message.mutable_request();
  Show(snapshot.spec, request);
  request.set_target(snapshot.spec.requested_target);
  message.set_owner(snapshot.spec.owner);
  for (const auto& [outcome, count] : snapshot.outcomes) {
    (*message.mutable_outcomes())[std::string(record::OutcomeName(outcome))] = count;
  }
  message.set_after_cancel_ms(absl::ToInt64Milliseconds(snapshot.after_cancel));
  if (snapshot.best) *message.mutable_best() = ToProto(*snapshot.best);
  if (snapshot.default_schedule) {
    *message.mutable_default_schedule() = ToProto(*snapshot.default_schedule);
  }
  message.set_default_confirmed(DefaultIsConfirmed(snapshot));
  if (snapshot.given) *message.mutable_given() = ToProto(*snapshot.given);
  if (snapshot.own_best) *message.mutable_own_best() = ToProto(*snapshot.own_best);
  if (snapshot.left < absl::InfiniteDuration()) {
    message.set_left_ms(absl::ToInt64Milliseconds(std::max(snapshot.left, absl::ZeroDuration())));
  }
  message.set_wait_reason(snapshot.wait_reason);
  message.set_queued(snapshot.queued);
  *message.mutable_phase() = PhaseToProto(snapshot.phase);
  message.set_is_check(snapshot.spec.is_check);
  for (const auto& [name, state] : snapshot.proposers) {
    v1::Proposer& proposer = *message.add_proposers();
    Show(state, proposer);
    proposer.set_name(name);
  }
  if (snapshot.spec.network.has_value()) {
    *request.mutable_network() = RequestToProto(*snapshot.spec.network);
    *message.mutable_network() = ProgressToProto(snapshot);
  }
  return message;
}

v1::WorkerInfo ToProto(const fleet::WorkerInfo& worker, absl::Time now) {
  v1::WorkerInfo message;
  message.set_id(worker.id);
  message.set_host(worker.capabilities.host);
  message.set_target(worker.capabilities.target_key);
  message.set_peak_gflops(worker.capabilities.peak_gflops);
  message.set_peak_gflops_one_core(worker.capabilities.peak_gflops_one_core);
  message.set_connected(worker.connected);
  const bool heard_of = worker.silent != absl::InfiniteDuration();
  message.set_last_seen_unix_ms(heard_of ? absl::ToUnixMillis(now - worker.silent) : 0);
  message.set_leases(worker.leases);
  message.set_last_error(worker.last_error);
  message.set_can_build(worker.capabilities.can_build);
  message.set_can_run(worker.capabilities.can_run);
  message.set_environment(Describe(worker.capabilities.environment));
  *message.mutable_facts() = record::ToProto(worker.capabilities.environment);
  message.set_read_gbps(worker.capabilities.read_gbps);
  const absl::StatusOr<target::Target> target =
      target::Target::FromText(worker.capabilities.target);
  if (target.ok()) {
    message.set_calibration(target->calibration.ToText());
    AddConstants(*target, *message.mutable_constants());
  }
  message.set_draining(worker.drained);
  message.set_stopping(worker.stopping);
  message.set_silent(worker.connected && !worker.HasCalled());
  message.set_flagged(worker.flagged);
  message.set_memory_bytes(worker.capabilities.memory_bytes);
  message.set_accelerator(worker.capabilities.accelerator);
  if (worker.machine != record::MachineState()) {
    *message.mutable_machine() = record::ToProto(worker.machine);
  }
  for (const fleet::Activity& activity : worker.activities) {
    v1::WorkerActivity& row = *message.add_activities();
    row.set_job_id(activity.work->job_id);
    row.set_operator_(activity.work->op);
    row.set_workload_digest(activity.work->workload_digest);
    row.set_running(activity.running);
    row.set_since_unix_ms(absl::ToUnixMillis(now - activity.duration));
    row.set_attempt(activity.attempt);
    row.set_policy(activity.work->policy.name);
  }
  return message;
}

void AddConstants(const target::Target& target,
                  google::protobuf::RepeatedPtrField<v1::MachineConstant>& constants) {
  for (const feature::MachineConstant& constant : feature::MachineConstants(target)) {
    v1::MachineConstant& row = *constants.Add();
    row.set_name(std::string(constant.name));
    row.set_meaning(std::string(constant.meaning));
    row.set_ns(constant.ns);
    row.set_cycles(constant.cycles);
    row.set_measured(constant.measured);
    row.set_unusual(constant.unusual);
    row.set_preset_cycles(constant.preset_cycles);
  }
}

v1::FeatureTable ToProto(const job::FeatureTable& table) {
  v1::FeatureTable message;
  message.set_feature_set(table.feature_set);
  message.set_target(table.target);
  for (const std::string& column : table.columns) message.add_columns(column);
  const size_t columns = table.columns.size();
  for (size_t i = 0; i < table.values.size(); ++i) {
    v1::FeatureRow* row =
        i % columns == 0 ? message.add_rows() : message.mutable_rows(message.rows_size() - 1);
    row->add_values(table.values[i]);
  }
  return message;
}

absl::StatusOr<int> PageSize(int asked) {
  if (asked < 0) return FieldError("page_size", "negative");
  return asked == 0 ? kDefaultPage : std::min(asked, kMaxPage);
}

absl::Status CheckPageToken(const std::string& token) {
  if (token.size() <= kMaxIdBytes) return absl::OkStatus();
  return FieldError("page_token", "not a page token of this server");
}

void SetPeaks(const fleet::Fleet& fleet, v1::Job& job) {
  Peaks peaks = OfWorkers(fleet, job.target());
  std::vector<v1::Best*> bests;
  if (job.has_best()) bests.push_back(job.mutable_best());
  if (job.has_default_schedule()) bests.push_back(job.mutable_default_schedule());
  if (job.has_given()) bests.push_back(job.mutable_given());
  if (job.has_own_best()) bests.push_back(job.mutable_own_best());
  for (const v1::Best* best : bests) Raise(*best, peaks);
  for (v1::Best* best : bests) Set(peaks, *best);
  if (!job.has_network()) return;
  for (const v1::NetworkTaskProgress& task : job.network().tasks()) {
    peaks.gflops = std::max(peaks.gflops, task.peak_gflops());
  }
  for (v1::NetworkTaskProgress& task : *job.mutable_network()->mutable_tasks()) {
    if (task.peak_gflops() > 0) task.set_peak_gflops(peaks.gflops);
  }
}

void SetPeaks(const fleet::Fleet& fleet, const job::WorkloadInfo& workload, v1::Best& best) {
  Peaks peaks = OfWorkers(fleet, best.record().target());
  Raise(best, peaks);
  if (const auto record = record::FromProto(best.record()); record.ok() && peaks.gflops > 0) {
    peaks.gflops = std::max(peaks.gflops, job::LeastPeakOf(workload, *record));
  }
  best.set_peak_gflops(workload.has_fma_peak ? peaks.gflops : 0);
  best.set_read_gbps(peaks.read_gbps);
}

}  // namespace hone::service

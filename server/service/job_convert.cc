#include "server/service/job_convert.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/record/processes.h"
#include "common/record/proto_convert.h"
#include "server/service/field_error.h"
#include "server/service/network_convert.h"

namespace hone::service {
namespace {

std::string Describe(const record::Environment& e) {
  return absl::StrCat(e.cpu, ", ", e.cores, " cores, ", e.isa, ", ", e.os, ", governor ",
                      e.governor.empty() ? "unknown" : e.governor, ", ", e.compiler);
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
  switch (state) {
    case job::JobState::kPending:
      return v1::JOB_STATE_PENDING;
    case job::JobState::kRunning:
      return v1::JOB_STATE_RUNNING;
    case job::JobState::kConfirming:
      return v1::JOB_STATE_CONFIRMING;
    case job::JobState::kDone:
      return v1::JOB_STATE_DONE;
    case job::JobState::kCancelled:
      return v1::JOB_STATE_CANCELLED;
    case job::JobState::kFailed:
      return v1::JOB_STATE_FAILED;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

namespace {

absl::StatusOr<job::JobSpec> ReadSpec(const v1::CreateJobRequest& request,
                                      const job::TaskEnvironment& environment) {
  if (request.request_id().size() > kMaxIdBytes) return FieldError("request_id", "too long");
  if (request.target().size() > kMaxIdBytes) return FieldError("target", "too long");
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
  if (!std::isfinite(request.tolerance()) || request.tolerance() < 0 || request.tolerance() > 1) {
    return FieldError("tolerance", "not a number from 0 to 1");
  }
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
  if (!request.inputs_digest().empty() && !Digest::FromHex(request.inputs_digest()).ok()) {
    return FieldError("inputs_digest", "not 32 hex digits");
  }
  job::JobSpec spec{.request_id = request.request_id(),
                    .requested_target = request.target(),
                    .max_trials = request.max_trials(),
                    .max_time = absl::Milliseconds(request.max_time_ms()),
                    .seed = request.seed(),
                    .tolerance = request.tolerance(),
                    .feature_set = request.feature_set(),
                    .transfer = request.transfer(),
                    .revalidate = request.revalidate(),
                    .unpublished = request.unpublished(),
                    .inputs_digest = request.inputs_digest()};
  HONE_ASSIGN_OR_RETURN(
      spec.priority, Choose("priority", request.priority(), "normal", {"low", "normal", "high"}));
  HONE_ASSIGN_OR_RETURN(spec.strategy,
                        Choose("strategy", request.strategy(), environment.default_strategy(),
                               environment.StrategyNames()));
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
    const absl::Status fits = environment.CheckSpace(spec.workload, request.space());
    if (!fits.ok()) return FieldError("space", fits.message());
    spec.space = request.space();
  }
  return spec;
}

}  // namespace

absl::StatusOr<job::JobSpec> ToSpec(const v1::CreateJobRequest& request,
                                    const job::TaskEnvironment& environment) {
  return ReadSpec(request, environment);
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
  return ReadSpec(job, environment);
}

namespace {

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

}  // namespace

v1::Best ToProto(const job::Best& best) {
  v1::Best message;
  ShowRecord(best.record, message);
  message.set_processes(record::ProcessesOf(best.record.result));
  message.set_workload(best.workload);
  message.set_trace(best.trace);
  message.set_gflops(best.gflops);
  message.set_peak_gflops(best.peak_gflops);
  message.set_read_gbps(best.read_gbps);
  message.set_pinned_unix_ms(best.pinned_unix_ms);
  message.set_pinned_by(best.pinned_by);
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
  message.set_id(snapshot.id);
  message.set_state(ToProto(snapshot.state));
  message.set_error(snapshot.error);
  message.set_workload(snapshot.spec.workload);
  message.set_workload_digest(snapshot.workload_digest);
  message.set_target(snapshot.spec.target_key);
  v1::CreateJobRequest& request = *message.mutable_request();
  request.set_request_id(snapshot.spec.request_id);
  request.set_workload(snapshot.spec.workload);
  request.set_target(snapshot.spec.requested_target);
  request.set_max_trials(snapshot.spec.max_trials);
  request.set_max_time_ms(absl::ToInt64Milliseconds(snapshot.spec.max_time));
  request.set_seed(snapshot.spec.seed);
  request.set_strategy(snapshot.spec.strategy);
  request.set_cost_model(snapshot.spec.cost_model);
  request.set_tolerance(snapshot.spec.tolerance);
  request.set_space(snapshot.spec.space);
  request.set_feature_set(snapshot.spec.feature_set);
  request.set_transfer(snapshot.spec.transfer);
  request.set_revalidate(snapshot.spec.revalidate);
  request.set_priority(snapshot.spec.priority);
  request.set_unpublished(snapshot.spec.unpublished);
  request.set_inputs_digest(snapshot.spec.inputs_digest);
  message.set_owner(snapshot.spec.owner);
  message.set_trials(snapshot.trials);
  for (const auto& [outcome, count] : snapshot.outcomes) {
    (*message.mutable_outcomes())[std::string(record::OutcomeName(outcome))] = count;
  }
  message.set_dropped(snapshot.dropped);
  message.set_quarantined(snapshot.quarantined);
  message.set_created_unix_ms(snapshot.created_unix_ms);
  message.set_wall_ms(absl::ToInt64Milliseconds(snapshot.wall));
  message.set_after_cancel_ms(absl::ToInt64Milliseconds(snapshot.after_cancel));
  if (snapshot.best) *message.mutable_best() = ToProto(*snapshot.best);
  if (snapshot.default_schedule) {
    *message.mutable_default_schedule() = ToProto(*snapshot.default_schedule);
  }
  message.set_default_confirmed(DefaultIsConfirmed(snapshot));
  if (snapshot.given) *message.mutable_given() = ToProto(*snapshot.given);
  if (snapshot.own_best) *message.mutable_own_best() = ToProto(*snapshot.own_best);
  message.set_disturbed(snapshot.disturbed);
  message.set_disturbance(snapshot.disturbance);
  if (snapshot.left < absl::InfiniteDuration()) {
    message.set_left_ms(absl::ToInt64Milliseconds(std::max(snapshot.left, absl::ZeroDuration())));
  }
  message.set_wait_reason(snapshot.wait_reason);
  message.set_queued(snapshot.queued);
  message.set_phase(snapshot.phase);
  message.set_note(snapshot.note);
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
  message.set_draining(worker.drained);
  message.set_stopping(worker.stopping);
  message.set_silent(worker.connected && !worker.HasCalled());
  message.set_flagged(worker.flagged);
  message.set_memory_bytes(worker.capabilities.memory_bytes);
  message.set_accelerator(worker.capabilities.accelerator);
  if (worker.machine != record::MachineState()) {
    *message.mutable_machine() = record::ToProto(worker.machine);
  }
  return message;
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

}  // namespace hone::service

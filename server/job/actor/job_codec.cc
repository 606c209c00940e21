#include "server/job/actor/job_codec.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "hone/v1/job_state.pb.h"
#include "server/job/actor/network_codec.h"
#include "server/job/actor/stored_message.h"

namespace hone::job {

// The descriptions of the structs, as in common/record/fields.h.
template <record::Is<JobSpec> S, typename Visit>
void VisitFields(S& spec, Visit& visit) {
  visit({.proto = "request_id"}, spec.request_id);
  visit({.proto = "workload"}, spec.workload);
  visit({.proto = "requested_target"}, spec.requested_target);
  visit({.proto = "target_key"}, spec.target_key);
  visit({.proto = "target"}, spec.target);
  visit({.proto = "max_trials"}, spec.max_trials);
  visit({.proto = "max_time_ms"}, spec.max_time);
  visit({.proto = "seed"}, spec.seed);
  visit({.proto = "strategy"}, spec.strategy);
  visit({.proto = "cost_model"}, spec.cost_model);
  visit({.proto = "tolerance"}, spec.tolerance);
  visit({.proto = "feature_set"}, spec.feature_set);
  visit({.proto = "transfer"}, spec.transfer);
  visit({.proto = "space"}, spec.space);
  visit({.proto = "revalidate"}, spec.revalidate);
  visit({.proto = "owner"}, spec.owner);
  visit({.proto = "priority"}, spec.priority);
  visit({.proto = "unpublished"}, spec.unpublished);
  visit({.proto = "parent"}, spec.parent);
  visit({.proto = "inputs_digest"}, spec.inputs_digest);
}

template <record::Is<Best> B, typename Visit>
void VisitFields(B& best, Visit& visit) {
  visit({.proto = "record"}, best.record);
  visit({.proto = "workload"}, best.workload);
  visit({.proto = "trace"}, best.trace);
  visit({.proto = "gflops"}, best.gflops);
  visit({.proto = "peak_gflops"}, best.peak_gflops);
  visit({.proto = "read_gbps"}, best.read_gbps);
  visit({.proto = "pinned_by"}, best.pinned_by);
  visit({.proto = "pinned_unix_ms"}, best.pinned_unix_ms);
}

template <record::Is<RiskyStep> S, typename Visit>
void VisitFields(S& step, Visit& visit) {
  visit({.proto = "name"}, step.name);
  visit({.proto = "server"}, step.server);
  visit({.proto = "boot"}, step.boot);
}

// All fields except the state, the outcomes and the networks.
template <record::Is<JobSnapshot> S, typename Visit>
void VisitFields(S& snapshot, Visit& visit) {
  visit({.proto = "id"}, snapshot.id);
  visit({.proto = "cancelled"}, snapshot.cancelled);
  visit({.proto = "error"}, snapshot.error);
  visit({.proto = "workload_digest"}, snapshot.workload_digest);
  visit({.proto = "trials"}, snapshot.trials);
  visit({.proto = "dropped"}, snapshot.dropped);
  visit({.proto = "quarantined"}, snapshot.quarantined);
  visit({.proto = "created_unix_ms"}, snapshot.created_unix_ms);
  visit({.proto = "wall_ms"}, snapshot.wall);
  visit({.proto = "phase"}, snapshot.phase);
  visit({.proto = "note"}, snapshot.note);
  visit({.proto = "changes"}, snapshot.version);
  visit({.proto = "best"}, snapshot.best);
  visit({.proto = "default_schedule"}, snapshot.default_schedule);
  visit({.proto = "given"}, snapshot.given);
  visit({.proto = "crashes"}, snapshot.crashes);
  visit({.proto = "risky_step"}, snapshot.risky_step);
  visit({.proto = "own_best"}, snapshot.own_best);
  visit({.proto = "disturbed"}, snapshot.disturbed);
  visit({.proto = "disturbance"}, snapshot.disturbance);
  visit({.proto = "allowance"}, snapshot.allowance);
  visit({.proto = "cancelled_ms"}, snapshot.after_cancel);
  visit({.proto = "is_resumable"}, snapshot.is_resumable);
}

namespace {

template <typename Message, typename T>
Message WriteStored(const T& value) {
  Message message;
  message.set_version(kStoredVersion);
  WriteFields(value, message);
  return message;
}

template <typename Message, typename T>
absl::Status ReadStored(absl::string_view bytes, absl::string_view what, Message& message,
                        T& value) {
  HONE_RETURN_IF_ERROR(ParseStored(bytes, what, message));
  const absl::Status read = ReadFields(message, value);
  if (read.ok()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(what, " cannot be read: ", read.message()));
}

}  // namespace

std::string EncodeSpec(const JobSpec& spec) {
  auto message = WriteStored<v1::StoredJobSpec>(spec);
  if (spec.network.has_value()) WriteNetwork(*spec.network, *message.mutable_network());
  return message.SerializeAsString();
}

absl::StatusOr<JobSpec> DecodeSpec(absl::string_view stored) {
  JobSpec spec;
  v1::StoredJobSpec message;
  HONE_RETURN_IF_ERROR(ReadStored(stored, "the request of a job", message, spec));
  if (message.has_network()) spec.network = ReadNetwork(message.network());
  return spec;
}

std::string EncodeSnapshot(const JobSnapshot& snapshot) {
  auto message = WriteStored<v1::StoredJobState>(snapshot);
  message.set_state(std::string(JobStateName(snapshot.state)));
  for (const auto& [outcome, count] : snapshot.outcomes) {
    if (count == 0) continue;
    const int number = static_cast<int>(outcome);
    message.mutable_outcomes()->Resize(std::max(message.outcomes_size(), number + 1), 0);
    message.set_outcomes(number, count);
  }
  if (snapshot.network.has_value()) WriteNetworkState(*snapshot.network, message);
  return message.SerializeAsString();
}

absl::StatusOr<JobSnapshot> DecodeSnapshot(absl::string_view stored) {
  JobSnapshot snapshot;
  v1::StoredJobState message;
  HONE_RETURN_IF_ERROR(ReadStored(stored, "the summary of a job", message, snapshot));
  for (const record::Outcome outcome : record::AllOutcomes()) {
    const int number = static_cast<int>(outcome);
    const int64_t count = number < message.outcomes_size() ? message.outcomes(number) : 0;
    if (count != 0) snapshot.outcomes[outcome] = count;
  }
  if (message.tasks_size() > 0) snapshot.network = ReadNetworkState(message);
  if (auto known = JobStateFromName(message.state()); known.ok()) snapshot.state = *known;
  return snapshot;
}

store::JobRow RowOf(const JobSnapshot& snapshot, absl::Time now) {
  return {.id = snapshot.id,
          .request_id = snapshot.spec.request_id,
          .request = EncodeSpec(snapshot.spec),
          .state = std::string(JobStateName(snapshot.state)),
          .error = snapshot.error,
          .summary = EncodeSnapshot(snapshot),
          .created_unix_ms = snapshot.created_unix_ms,
          .updated_unix_ms = absl::ToUnixMillis(now),
          .owner = snapshot.spec.owner,
          .priority = snapshot.spec.priority,
          .fence = snapshot.fence};
}

absl::StatusOr<JobSnapshot> FromRow(const store::JobRow& row) {
  JobSnapshot snapshot;
  if (!row.summary.empty()) {
    HONE_ASSIGN_OR_RETURN(snapshot, DecodeSnapshot(row.summary));
  }
  snapshot.id = row.id;
  HONE_ASSIGN_OR_RETURN(snapshot.spec, DecodeSpec(row.request));
  HONE_ASSIGN_OR_RETURN(snapshot.state, JobStateFromName(row.state));
  snapshot.error = row.error;
  snapshot.created_unix_ms = row.created_unix_ms;
  snapshot.fence = row.fence;
  return snapshot;
}

}  // namespace hone::job

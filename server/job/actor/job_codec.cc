#include "server/job/actor/job_codec.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/record/message_fields.h"
#include "hone/v1/job_state.pb.h"

namespace hone::job {
namespace {

// The version of the messages in job_state.proto, which says when it must be raised.
constexpr int kStoredVersion = 1;

// Copy the fields that the description of T names (common/record/fields.h) to and from a message.
template <typename T>
void WriteFields(const T& value, google::protobuf::Message& message) {
  record::MessageWriter writer(message);
  VisitFields(value, writer);
}
template <typename T>
absl::Status ReadFields(const google::protobuf::Message& message, T& value) {
  record::MessageReader reader(message, /*check=*/false);
  VisitFields(value, reader);
  return reader.status();
}

// Parses a stored message. `what` is its name in errors. DataLoss: the bytes are not such a
// message. FailedPrecondition: a newer release wrote it; the error says what to do.
template <typename Message>
absl::Status ParseStored(absl::string_view bytes, absl::string_view what, Message& message) {
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      message.version() < 1) {
    return absl::DataLossError(absl::StrCat(what, " cannot be read"));
  }
  if (message.version() <= kStoredVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what, " is of version ", message.version(),
                   ", but this program only supports versions up to ", kStoredVersion,
                   ": start the newer hone-server that wrote it, or restore an older backup"));
}

}  // namespace

template <record::Is<ProposeEvent> E, typename Visit>
void VisitFields(E& event, Visit& visit) {
  visit({.proto = "asked"}, event.asked);
  visit({.proto = "model_version"}, event.model_version);
  visit({.proto = "model_tells"}, event.model_tells);
  visit({.proto = "prior_record"}, event.prior_record);
  visit({.proto = "proposals"}, event.proposals);
}

template <record::Is<Proposal> P, typename Visit>
void VisitFields(P& proposal, Visit& visit) {
  visit({.proto = "trial"}, proposal.trial);
  visit({.proto = "space"}, proposal.candidate.space_digest);
  visit({.proto = "decisions"}, proposal.candidate.decisions);
}

template <record::Is<ExternalEvent> E, typename Visit>
void VisitFields(E& event, Visit& visit) {
  visit({.proto = "proposer"}, event.proposer);
  visit({.proto = "proposal"}, event.proposal);
}

template <record::Is<TellEvent::Told> T, typename Visit>
void VisitFields(T& told, Visit& visit) {
  visit({.proto = "trial"}, told.trial);
  visit({.proto = "outcome"}, told.outcome);
  visit({.proto = "latency_ns"}, told.latency_ns);
}

template <record::Is<TellEvent> E, typename Visit>
void VisitFields(E& event, Visit& visit) {
  visit({.proto = "told"}, event.told);
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

template <typename T>
T ReadAs(const google::protobuf::Message& message) {
  T value;
  // This program wrote the values, so they are not checked and reading cannot fail.
  ReadFields(message, value).IgnoreError();
  return value;
}

void WriteNetworkState(const NetworkState& state, v1::StoredJobState& message) {
  for (const NetworkTaskState& task : state.tasks) {
    v1::StoredNetworkTaskState& stored = *message.add_tasks();
    WriteFields(task, stored);
    for (const ProgressPoint& point : task.curve) {
      stored.add_curve_trials(point.trials);
      stored.add_curve_latencies_ns(point.latency_ns);
    }
  }
  record::MessageWriter writer(message);
  writer({.proto = "estimates"}, state.estimates);
}

NetworkState ReadNetworkState(const v1::StoredJobState& message) {
  NetworkState state;
  for (const v1::StoredNetworkTaskState& stored : message.tasks()) {
    auto& task = state.tasks.emplace_back(ReadAs<NetworkTaskState>(stored));
    const int points = std::min(stored.curve_trials_size(), stored.curve_latencies_ns_size());
    for (int i = 0; i < points; ++i) {
      task.curve.push_back({stored.curve_trials(i), stored.curve_latencies_ns(i)});
    }
  }
  record::MessageReader reader(message, /*check=*/false);
  reader({.proto = "estimates"}, state.estimates);
  return state;
}

std::string NameOf(const store::JobEvent& event) {
  return absl::StrCat("event ", event.number, " of job ", event.job_id);
}

absl::Status Damaged(const store::JobEvent& event) {
  return absl::DataLossError(absl::StrCat(NameOf(event), " cannot be read"));
}

template <typename Message, typename Event>
store::JobEvent EncodeAs(const std::string& job_id, const Event& event, const char* kind) {
  return {job_id, event.number, kind, WriteStored<Message>(event).SerializeAsString()};
}

template <typename Message, typename Event>
absl::StatusOr<Event> DecodeAs(const store::JobEvent& event, absl::string_view kind) {
  if (event.kind != kind) return Damaged(event);
  Message message;
  HONE_RETURN_IF_ERROR(ParseStored(event.payload, NameOf(event), message));
  Event decoded{.number = event.number};
  if (!ReadFields(message, decoded).ok()) return Damaged(event);
  return decoded;
}

}  // namespace

std::string EncodeSpec(const JobSpec& spec) {
  return WriteStored<v1::StoredJobSpec>(spec).SerializeAsString();
}

absl::StatusOr<JobSpec> DecodeSpec(absl::string_view stored) {
  JobSpec spec;
  v1::StoredJobSpec message;
  HONE_RETURN_IF_ERROR(ReadStored(stored, "the request of a job", message, spec));
  return spec;
}

std::string EncodeSnapshot(const JobSnapshot& snapshot) {
  auto message = WriteStored<v1::StoredJobState>(snapshot);
  message.set_state(std::string(JobStateName(snapshot.state)));
  message.mutable_phase()->set_kind(static_cast<v1::JobPhase::Kind>(snapshot.phase.kind));
  for (const auto& [outcome, count] : snapshot.outcomes) {
    if (count == 0) continue;
    const int number = static_cast<int>(outcome);
    message.mutable_outcomes()->Resize(std::max(message.outcomes_size(), number + 1), 0);
    message.set_outcomes(number, count);
  }
  if (snapshot.network.has_value()) WriteNetworkState(*snapshot.network, message);
  for (const auto& [name, proposer] : snapshot.proposers) {
    v1::StoredProposer& stored = *message.add_proposers();
    WriteFields(proposer, stored);
    stored.set_name(name);
  }
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
  snapshot.phase.kind = static_cast<PhaseKind>(message.phase().kind());
  for (const v1::StoredProposer& stored : message.proposers()) {
    snapshot.proposers[stored.name()] = ReadAs<ProposerState>(stored);
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
          .priority = snapshot.spec.priority};
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
  return snapshot;
}

store::JobEvent Encode(const std::string& job_id, const ProposeEvent& event) {
  return EncodeAs<v1::StoredPropose>(job_id, event, kProposeKind);
}

store::JobEvent Encode(const std::string& job_id, const ExternalEvent& event) {
  return EncodeAs<v1::StoredExternal>(job_id, event, kExternalKind);
}

store::JobEvent Encode(const std::string& job_id, const TellEvent& event) {
  return EncodeAs<v1::StoredTell>(job_id, event, kTellKind);
}

absl::StatusOr<ProposeEvent> DecodePropose(const store::JobEvent& event) {
  return DecodeAs<v1::StoredPropose, ProposeEvent>(event, kProposeKind);
}

absl::StatusOr<ExternalEvent> DecodeExternal(const store::JobEvent& event) {
  auto decoded = DecodeAs<v1::StoredExternal, ExternalEvent>(event, kExternalKind);
  if (decoded.ok() && decoded->proposal.trial < 1) return Damaged(event);
  return decoded;
}

absl::StatusOr<TellEvent> DecodeTell(const store::JobEvent& event) {
  auto decoded = DecodeAs<v1::StoredTell, TellEvent>(event, kTellKind);
  if (decoded.ok() && decoded->told.empty()) return Damaged(event);
  return decoded;
}

}  // namespace hone::job

#include "server/task/search_event.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/record/proto_convert.h"
#include "hone/v1/job_state.pb.h"
#include "server/task/json_fields.h"
#include "server/task/stored_message.h"

namespace hone::task {
namespace {

std::string NameOf(const store::JobEvent& event) {
  return absl::StrCat("event ", event.number, " of job ", event.job_id);
}

absl::Status Damaged(const store::JobEvent& event) {
  return absl::DataLossError(absl::StrCat(NameOf(event), " cannot be read"));
}

// The JSON of earlier releases.
absl::StatusOr<ProposeEvent> DecodeOldPropose(const store::JobEvent& event) {
  const Json payload = ParseJson(event.payload);
  ProposeEvent decoded{.number = event.number};
  if (!payload.is_object()) return Damaged(event);
  Read(payload, "asked", &decoded.asked);
  Read(payload, "model_version", &decoded.model_version);
  Read(payload, "model_tells", &decoded.model_tells);
  Read(payload, "prior_record", &decoded.prior_record);
  Read(payload, "transfer_record", &decoded.transfer_record);
  Read(payload, "transfer_model", &decoded.transfer_model);
  const auto proposals = payload.find("proposals");
  if (proposals == payload.end() || !proposals->is_array()) return Damaged(event);
  for (const Json& entry : *proposals) {
    if (!entry.is_object()) return Damaged(event);
    Proposal& proposal = decoded.proposals.emplace_back();
    Read(entry, "trial", &proposal.trial);
    Read(entry, "space", &proposal.candidate.space_digest);
    Read(entry, "decisions", &proposal.candidate.decisions);
  }
  return decoded;
}

absl::StatusOr<TellEvent> DecodeOldTell(const store::JobEvent& event) {
  const Json payload = ParseJson(event.payload);
  if (!payload.is_object()) return Damaged(event);
  const auto several = payload.find("told");
  // Before they were gathered, each was an event of its own.
  const Json told = several == payload.end() ? Json::array({payload}) : *several;
  if (!told.is_array() || told.empty()) return Damaged(event);
  TellEvent decoded{.number = event.number};
  for (const Json& entry : told) {
    if (!entry.is_object()) return Damaged(event);
    TellEvent::Told& one = decoded.told.emplace_back();
    std::string outcome;
    Read(entry, "trial", &one.trial);
    Read(entry, "outcome", &outcome);
    Read(entry, "latency_ns", &one.latency_ns);
    const absl::StatusOr<record::Outcome> known = record::OutcomeFromName(outcome);
    if (!known.ok()) return Damaged(event);
    one.outcome = *known;
  }
  return decoded;
}

}  // namespace

store::JobEvent Encode(const std::string& job_id, const ProposeEvent& event) {
  v1::StoredPropose message;
  message.set_version(kStoredVersion);
  message.set_asked(event.asked);
  message.set_model_version(event.model_version);
  message.set_model_tells(event.model_tells);
  message.set_prior_record(event.prior_record);
  message.set_transfer_record(event.transfer_record);
  message.set_transfer_model(event.transfer_model);
  for (const Proposal& proposal : event.proposals) {
    v1::StoredProposal& stored = *message.add_proposals();
    stored.set_trial(proposal.trial);
    stored.set_space(proposal.candidate.space_digest);
    stored.mutable_decisions()->Assign(proposal.candidate.decisions.begin(),
                                       proposal.candidate.decisions.end());
  }
  return {job_id, event.number, kProposeKind, message.SerializeAsString()};
}

store::JobEvent Encode(const std::string& job_id, const TellEvent& event) {
  v1::StoredTell message;
  message.set_version(kStoredVersion);
  for (const TellEvent::Told& one : event.told) {
    v1::StoredTold& stored = *message.add_told();
    stored.set_trial(one.trial);
    stored.set_outcome(record::ToProto(one.outcome));
    stored.set_latency_ns(one.latency_ns);
  }
  return {job_id, event.number, kTellKind, message.SerializeAsString()};
}

absl::StatusOr<ProposeEvent> DecodePropose(const store::JobEvent& event) {
  if (event.kind != kProposeKind) return Damaged(event);
  if (IsJson(event.payload)) return DecodeOldPropose(event);
  v1::StoredPropose message;
  HONE_RETURN_IF_ERROR(ParseStored(event.payload, NameOf(event), message));
  ProposeEvent decoded{.number = event.number,
                       .asked = message.asked(),
                       .model_version = message.model_version(),
                       .model_tells = message.model_tells(),
                       .prior_record = message.prior_record(),
                       .transfer_record = message.transfer_record(),
                       .transfer_model = message.transfer_model()};
  for (const v1::StoredProposal& stored : message.proposals()) {
    decoded.proposals.push_back(
        {{stored.space(), {stored.decisions().begin(), stored.decisions().end()}}, stored.trial()});
  }
  return decoded;
}

absl::StatusOr<TellEvent> DecodeTell(const store::JobEvent& event) {
  if (event.kind != kTellKind) return Damaged(event);
  if (IsJson(event.payload)) return DecodeOldTell(event);
  v1::StoredTell message;
  HONE_RETURN_IF_ERROR(ParseStored(event.payload, NameOf(event), message));
  if (message.told().empty()) return Damaged(event);
  TellEvent decoded{.number = event.number};
  for (const v1::StoredTold& stored : message.told()) {
    const absl::StatusOr<record::Outcome> outcome = record::FromProto(stored.outcome());
    if (!outcome.ok()) return Damaged(event);
    decoded.told.push_back({stored.trial(), *outcome, stored.latency_ns()});
  }
  return decoded;
}

}  // namespace hone::task

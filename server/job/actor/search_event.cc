#include "server/job/actor/search_event.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "hone/v1/job_state.pb.h"
#include "server/job/actor/stored_message.h"

namespace hone::job {

// The descriptions of the structs, as in common/record/fields.h, without the lists.
template <record::Is<ProposeEvent> E, typename Visit>
void VisitFields(E& event, Visit& visit) {
  visit({.proto = "asked"}, event.asked);
  visit({.proto = "model_version"}, event.model_version);
  visit({.proto = "model_tells"}, event.model_tells);
  visit({.proto = "prior_record"}, event.prior_record);
  visit({.proto = "transfer_record"}, event.transfer_record);
  visit({.proto = "transfer_model"}, event.transfer_model);
}

template <record::Is<Proposal> P, typename Visit>
void VisitFields(P& proposal, Visit& visit) {
  visit({.proto = "trial"}, proposal.trial);
  visit({.proto = "space"}, proposal.candidate.space_digest);
  visit({.proto = "decisions"}, proposal.candidate.decisions);
}

template <record::Is<TellEvent::Told> T, typename Visit>
void VisitFields(T& told, Visit& visit) {
  visit({.proto = "trial"}, told.trial);
  visit({.proto = "outcome"}, told.outcome);
  visit({.proto = "latency_ns"}, told.latency_ns);
}

namespace {

std::string NameOf(const store::JobEvent& event) {
  return absl::StrCat("event ", event.number, " of job ", event.job_id);
}

absl::Status Damaged(const store::JobEvent& event) {
  return absl::DataLossError(absl::StrCat(NameOf(event), " cannot be read"));
}

}  // namespace

store::JobEvent Encode(const std::string& job_id, const ProposeEvent& event) {
  v1::StoredPropose message;
  message.set_version(kStoredVersion);
  WriteFields(event, message);
  for (const Proposal& proposal : event.proposals) WriteFields(proposal, *message.add_proposals());
  return {job_id, event.number, kProposeKind, message.SerializeAsString()};
}

store::JobEvent Encode(const std::string& job_id, const TellEvent& event) {
  v1::StoredTell message;
  message.set_version(kStoredVersion);
  for (const TellEvent::Told& one : event.told) WriteFields(one, *message.add_told());
  return {job_id, event.number, kTellKind, message.SerializeAsString()};
}

absl::StatusOr<ProposeEvent> DecodePropose(const store::JobEvent& event) {
  if (event.kind != kProposeKind) return Damaged(event);
  v1::StoredPropose message;
  HONE_RETURN_IF_ERROR(ParseStored(event.payload, NameOf(event), message));
  ProposeEvent decoded{.number = event.number};
  absl::Status status = ReadFields(message, decoded);
  for (const v1::StoredProposal& stored : message.proposals()) {
    status.Update(ReadFields(stored, decoded.proposals.emplace_back()));
  }
  if (!status.ok()) return Damaged(event);
  return decoded;
}

absl::StatusOr<TellEvent> DecodeTell(const store::JobEvent& event) {
  if (event.kind != kTellKind) return Damaged(event);
  v1::StoredTell message;
  HONE_RETURN_IF_ERROR(ParseStored(event.payload, NameOf(event), message));
  if (message.told().empty()) return Damaged(event);
  TellEvent decoded{.number = event.number};
  absl::Status status;
  for (const v1::StoredTold& stored : message.told()) {
    status.Update(ReadFields(stored, decoded.told.emplace_back()));
  }
  if (!status.ok()) return Damaged(event);
  return decoded;
}

}  // namespace hone::job

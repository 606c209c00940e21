#include "server/task/search_event.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/task/json_fields.h"

namespace hone::task {
namespace {

absl::Status Damaged(const store::JobEvent& event) {
  return absl::DataLossError(
      absl::StrCat("event ", event.number, " of job ", event.job_id, " cannot be read"));
}

}  // namespace

store::JobEvent Encode(const std::string& job_id, const ProposeEvent& event) {
  Json proposals = Json::array();
  for (const Proposal& proposal : event.proposals) {
    proposals.push_back({{"trial", proposal.trial},
                         {"space", proposal.candidate.space_digest},
                         {"decisions", proposal.candidate.decisions}});
  }
  const Json payload = {{"asked", event.asked},
                        {"model_version", event.model_version},
                        {"model_tells", event.model_tells},
                        {"prior_record", event.prior_record},
                        {"transfer_record", event.transfer_record},
                        {"transfer_model", event.transfer_model},
                        {"proposals", proposals}};
  return {job_id, event.number, kProposeKind, ToLine(payload)};
}

store::JobEvent Encode(const std::string& job_id, const TellEvent& event) {
  // Written by hand: there is a part for each result.
  std::string told;
  for (const TellEvent::Told& one : event.told) {
    absl::StrAppend(&told, told.empty() ? "" : ",", "{\"latency_ns\":", ToLine(one.latency_ns),
                    ",\"outcome\":\"", absl::string_view(record::OutcomeName(one.outcome)),
                    "\",\"trial\":", one.trial, "}");
  }
  return {job_id, event.number, kTellKind, absl::StrCat("{\"told\":[", told, "]}")};
}

absl::StatusOr<ProposeEvent> DecodePropose(const store::JobEvent& event) {
  const Json payload = ParseJson(event.payload);
  if (event.kind != kProposeKind || !payload.is_object()) return Damaged(event);
  ProposeEvent decoded{.number = event.number};
  Read(payload, "asked", &decoded.asked);
  Read(payload, "model_version", &decoded.model_version);
  Read(payload, "model_tells", &decoded.model_tells);
  Read(payload, "prior_record", &decoded.prior_record);
  Read(payload, "transfer_record", &decoded.transfer_record);
  Read(payload, "transfer_model", &decoded.transfer_model);
  auto proposals = payload.find("proposals");
  if (proposals == payload.end() || !proposals->is_array()) return Damaged(event);
  for (const Json& entry : *proposals) {
    if (!entry.is_object()) return Damaged(event);
    Proposal proposal;
    Read(entry, "trial", &proposal.trial);
    Read(entry, "space", &proposal.candidate.space_digest);
    Read(entry, "decisions", &proposal.candidate.decisions);
    decoded.proposals.push_back(std::move(proposal));
  }
  return decoded;
}

absl::StatusOr<TellEvent> DecodeTell(const store::JobEvent& event) {
  const Json payload = ParseJson(event.payload);
  if (event.kind != kTellKind || !payload.is_object()) return Damaged(event);
  const auto several = payload.find("told");
  // Before they were gathered, each was an event of its own.
  const Json told = several == payload.end() ? Json::array({payload}) : *several;
  if (!told.is_array() || told.empty()) return Damaged(event);
  TellEvent decoded{.number = event.number};
  for (const Json& entry : told) {
    if (!entry.is_object()) return Damaged(event);
    TellEvent::Told one;
    std::string outcome;
    Read(entry, "trial", &one.trial);
    Read(entry, "outcome", &outcome);
    Read(entry, "latency_ns", &one.latency_ns);
    absl::StatusOr<record::Outcome> known = record::OutcomeFromName(outcome);
    if (!known.ok()) return Damaged(event);
    one.outcome = *known;
    decoded.told.push_back(one);
  }
  return decoded;
}

}  // namespace hone::task

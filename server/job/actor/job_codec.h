#ifndef HONE_SERVER_JOB_ACTOR_JOB_CODEC_H_
#define HONE_SERVER_JOB_ACTOR_JOB_CODEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/record/record.h"
#include "server/job/actor/job_types.h"
#include "server/store/store.h"

namespace hone::job {

// Convert a job to and from store::JobRow: its request and its last summary are stored as messages
// of proto/hone/v1/job_state.proto. DataLoss: the bytes are damaged. FailedPrecondition: a newer
// release wrote them.
std::string EncodeSpec(const JobSpec& spec);
absl::StatusOr<JobSpec> DecodeSpec(absl::string_view stored);

// Convert everything except the spec.
std::string EncodeSnapshot(const JobSnapshot& snapshot);
absl::StatusOr<JobSnapshot> DecodeSnapshot(absl::string_view stored);

// Returns the row of a job.
store::JobRow RowOf(const JobSnapshot& snapshot, absl::Time now);
absl::StatusOr<JobSnapshot> FromRow(const store::JobRow& row);

// A candidate of a Propose. Candidates that were measured before are dropped and get no trial.
struct Proposal {
  record::Candidate candidate;
  int64_t trial = -1;  // -1: dropped
  friend bool operator==(const Proposal&, const Proposal&) = default;
};

// A call of SearchStrategy::Propose: its arguments, its model and its result. Replaying a job's
// events in order reproduces the candidates.
struct ProposeEvent {
  int64_t number = 0;
  int asked = 0;
  int64_t model_version = 0;  // how often the model had been trained; 0: untrained
  int64_t model_tells = 0;    // how many Tells, including earlier records, it was trained on
  int64_t prior_record = 0;   // earlier records up to this id were told before the first Propose
  std::vector<Proposal> proposals;
};

// Consecutive results that were told to the strategy.
struct TellEvent {
  struct Told {
    int64_t trial = 0;
    record::Outcome outcome = record::Outcome::kOk;
    double latency_ns = 0;
    friend bool operator==(const Told&, const Told&) = default;
  };
  int64_t number = 0;
  std::vector<Told> told;
};

// A candidate that another program proposed. It has a trial.
struct ExternalEvent {
  int64_t number = 0;
  std::string proposer;
  Proposal proposal;
};

store::JobEvent Encode(const std::string& job_id, const ProposeEvent& event);
store::JobEvent Encode(const std::string& job_id, const ExternalEvent& event);
store::JobEvent Encode(const std::string& job_id, const TellEvent& event);
// DataLoss: the event is damaged. FailedPrecondition: a newer release wrote it.
absl::StatusOr<ProposeEvent> DecodePropose(const store::JobEvent& event);
absl::StatusOr<ExternalEvent> DecodeExternal(const store::JobEvent& event);
absl::StatusOr<TellEvent> DecodeTell(const store::JobEvent& event);

inline constexpr char kProposeKind[] = "propose";
inline constexpr char kExternalKind[] = "external";
inline constexpr char kTellKind[] = "tell";

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_JOB_CODEC_H_

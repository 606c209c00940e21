#ifndef HONE_SERVER_TASK_SEARCH_EVENT_H_
#define HONE_SERVER_TASK_SEARCH_EVENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/store/store.h"

namespace hone::task {

// One candidate of a Propose. Those that were measured before are dropped and get no trial.
struct Proposal {
  record::Candidate candidate;
  int64_t trial = -1;  // -1: dropped
  friend bool operator==(const Proposal&, const Proposal&) = default;
};

// A call of SearchStrategy::Propose: what was asked, with which model, and what came. Replaying a
// job's events in order reproduces the candidates.
struct ProposeEvent {
  int64_t number = 0;
  int asked = 0;
  int64_t model_version = 0;  // trainings so far of the model that was used; 0: not trained yet
  int64_t model_tells =
      0;  // how many of the first Tells (earlier records included) it was trained on
  int64_t prior_record = 0;  // earlier records up to this id were told before the first Propose
  // Other workloads' records up to this id were what it started from; 0: it started from none.
  int64_t transfer_record = 0;
  // The stored model that it started from, by its row; 0: none.
  int64_t transfer_model = 0;
  std::vector<Proposal> proposals;
};

// Results that were told to the strategy one after the other.
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

store::JobEvent Encode(const std::string& job_id, const ProposeEvent& event);
store::JobEvent Encode(const std::string& job_id, const TellEvent& event);
// DataLoss: not written by Encode, of this or an earlier release. FailedPrecondition: a newer
// release wrote it.
absl::StatusOr<ProposeEvent> DecodePropose(const store::JobEvent& event);
absl::StatusOr<TellEvent> DecodeTell(const store::JobEvent& event);

inline constexpr char kProposeKind[] = "propose";
inline constexpr char kTellKind[] = "tell";

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_SEARCH_EVENT_H_

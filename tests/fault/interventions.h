#ifndef HONE_TESTS_FAULT_INTERVENTIONS_H_
#define HONE_TESTS_FAULT_INTERVENTIONS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tests/fault/fault_schedule.h"
#include "tests/fault/invariants.h"

// What the chaos test does like an administrator so that every job ends, and the faults that must
// explain it. A job that failed or a worker that was flagged without such a fault is a defect.
namespace hone::fault {

struct Intervention {
  enum class Kind {
    kUnflag,   // a flagged worker gets leases again
    kResume,   // a job that failed or was cancelled continues
    kRestart,  // a server or the database that ended by itself is started again
  };
  Kind kind = Kind::kResume;
  absl::Time at;       // when the test noticed the reason
  std::string whom;    // "worker desk-1", "job 17", "server-1"
  std::string reason;  // the flag, the job's error, or the last words of the program
};

// A fault of the schedule that had a victim.
struct StruckFault {
  FaultKind kind = FaultKind::kKillLeader;
  absl::Time began;
  absl::Time ended;    // infinite while it lasts
  std::string victim;  // "desk-1"; "" if it has no name
};

// An intervention is explained if its reason contains one of the texts, and enough faults of these
// kinds were in effect when it was noticed, or had ended at most `within` earlier.
struct ExplanationRule {
  Intervention::Kind kind;
  std::vector<absl::string_view> reasons;
  std::vector<FaultKind> faults;
  absl::Duration within;
  int at_least = 1;           // the number of faults
  bool names_victim = false;  // only faults whose victim is named in the reason
};
const std::vector<ExplanationRule>& ExplanationRules();

// Every intervention is explained by faults. `began`: the beginning of the schedule, for messages.
Verdict CheckInterventions(const std::vector<Intervention>& interventions,
                           const std::vector<StruckFault>& faults, absl::Time began);

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_INTERVENTIONS_H_

#ifndef HONE_CLIENT_CLI_OUTPUT_PHASE_TEXT_H_
#define HONE_CLIENT_CLI_OUTPUT_PHASE_TEXT_H_

#include <string>

#include "client/connection/api.h"

namespace hone::cli {

// What kind of step the phase of a job is.
enum class PhaseRole {
  kPrepares,  // a server that has restarted finds the earlier trials of the job again
  kSearches,
  kFinishes,  // the search
  kConfirms,
  kWaits,
};
PhaseRole RoleOf(const v1::JobPhase& phase);

// What a job does or waits for, in words; "" if its state says enough.
struct PhaseTexts {
  std::string full;   // "waiting for a quieter machine: on worker x, other programs are busy"
  std::string brief;  // "waiting for a quieter machine"
};
PhaseTexts TextsOf(const v1::JobPhase& phase);
inline std::string PhaseText(const v1::Job& job) { return TextsOf(job.phase()).full; }

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_OUTPUT_PHASE_TEXT_H_

#ifndef HONE_SERVER_JOB_ACTOR_RISKY_STEP_H_
#define HONE_SERVER_JOB_ACTOR_RISKY_STEP_H_

#include <string>

#include "absl/strings/string_view.h"

namespace hone::job {

// A step of a job that runs a lot of code on user input, in which a defect may crash the server:
// making the design spaces, or proposing candidates. It is stored with the job before it begins and
// removed when it ends. If a server takes over a job with a stored step, it assumes that an earlier
// server crashed during this step.
struct RiskyStep {
  std::string name;    // "making the design spaces"
  std::string server;  // the run of the server, as in claims on jobs: "host/…"
  std::string boot;    // boot ID of its machine; "": unknown

  friend bool operator==(const RiskyStep&, const RiskyStep&) = default;
};

// The names of the steps, for messages: "the server ended while making the design spaces".
inline constexpr char kMakingSpaces[] = "making the design spaces";
inline constexpr char kProposing[] = "proposing candidates";

// Returns the boot ID of this machine; "" if the system does not provide one.
std::string ThisBoot();

// Returns whether a server probably crashed in the step. `server` is the run that found the step.
// Returns false if the machine has been restarted since, or if the step belongs to `server` itself,
// which abandoned the job and took it over again.
bool EndedByItself(const RiskyStep& step, absl::string_view server, absl::string_view boot);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_RISKY_STEP_H_

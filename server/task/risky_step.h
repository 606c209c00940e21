#ifndef HONE_SERVER_TASK_RISKY_STEP_H_
#define HONE_SERVER_TASK_RISKY_STEP_H_

#include <string>

#include "absl/strings/string_view.h"

namespace hone::task {

// A step of a job that runs a lot of code on user input, so that a defect may crash the server:
// making the design spaces, or proposing candidates. It is stored with the job before it begins and
// removed after it. A server that takes up a job with a risky step assumes that an earlier server
// crashed in the middle of it.
struct RiskyStep {
  std::string name;    // "making the design spaces"
  std::string server;  // the run of the server, as in claims on jobs: "host/…"
  std::string boot;    // boot ID of its machine; "": unknown

  friend bool operator==(const RiskyStep&, const RiskyStep&) = default;
};

// The boot ID of this machine; "" if the system does not tell.
std::string ThisBoot();

// Whether a server crashed in the step, as far as `server`, the run that found the step, can tell.
// It did not if the machine has been restarted since, or if the step belongs to `server` itself,
// which let go of the job and took it up again.
bool EndedByItself(const RiskyStep& step, absl::string_view server, absl::string_view boot);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_RISKY_STEP_H_

#ifndef HONE_SERVER_TASK_RISKY_STEP_H_
#define HONE_SERVER_TASK_RISKY_STEP_H_

#include <string>

#include "absl/strings/string_view.h"

namespace hone::task {

// A step of a job that runs code on what a user wrote, so that a defect may end the whole server:
// making the design spaces, proposing candidates. It is stored with the job before it begins, and
// removed after it. A server that finds one with a job that it takes up assumes that an earlier
// server ended in the middle of it.
struct RiskyStep {
  std::string name;    // "making the design spaces"
  std::string server;  // the run of the server, as in claims on jobs: "host/…"
  std::string boot;    // of the machine that it ran on; "": unknown

  friend bool operator==(const RiskyStep&, const RiskyStep&) = default;
};

// Changes with every start of the machine. "" where the system does not tell.
std::string ThisBoot();

// Whether a server ended by itself in the step, as far as `server`, the run that found it, can
// tell. It did not where the machine was started anew since, or where the step is of `server`
// itself, which let go of the job and took it up again.
bool EndedByItself(const RiskyStep& step, absl::string_view server, absl::string_view boot);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_RISKY_STEP_H_

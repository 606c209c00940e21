#ifndef HONE_WORKER_AGENT_RUNNER_COMMAND_H_
#define HONE_WORKER_AGENT_RUNNER_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::agent {

// Returns the command that starts hone-runner. In a bundle (deploy/board.md), hone-worker is linked
// statically and runs anywhere, but hone-runner loads kernels and drivers and so needs a C library.
// It uses that of the machine if it can, because the machine's drivers are built for it. Otherwise
// the command starts it with the program loader and the C library in the bundle's folder `libc`.
//
// NotFound: hone-runner is not in `program_dir`. FailedPrecondition: neither way works; the message
// has both reasons.
absl::StatusOr<std::vector<std::string>> RunnerCommand(const std::string& program_dir);

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_RUNNER_COMMAND_H_

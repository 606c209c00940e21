#ifndef HONE_WORKER_AGENT_RUNNER_COMMAND_H_
#define HONE_WORKER_AGENT_RUNNER_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::agent {

// The command that starts hone-runner. hone-worker of a bundle (deploy/README.md) is linked
// statically and runs everywhere, but hone-runner opens kernels and drivers, and hence needs a C
// library. It takes that of the machine if it can, because the machine's drivers are made for it.
// Otherwise the program loader and the C library in the bundle's folder `libc` run it.
//
// NotFound: hone-runner is not in `program_dir`. FailedPrecondition: neither way works; the message
// has both reasons.
absl::StatusOr<std::vector<std::string>> RunnerCommand(const std::string& program_dir);

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_RUNNER_COMMAND_H_

#ifndef HONE_WORKER_AGENT_PROGRAM_OUTPUT_H_
#define HONE_WORKER_AGENT_PROGRAM_OUTPUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::agent {

// Runs a program to its end and returns its standard output. FailedPrecondition: it fails or takes
// more than a minute; the message has the end of its standard error. Unavailable: it asks to be run
// again later (EX_TEMPFAIL); the message is its own. Other errors as for ChildProcess::Start.
absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& command);

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_PROGRAM_OUTPUT_H_

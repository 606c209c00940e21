#ifndef HONE_CLIENT_CLI_QUIET_CHECK_H_
#define HONE_CLIENT_CLI_QUIET_CHECK_H_

#include <string>
#include <vector>

#include "client/cli/health_check.h"

namespace hone::cli {

// How quiet this machine is for measuring, and what makes it quieter: the frequency governor,
// turbo, isolated cores, what the host takes away, what else runs, huge pages. What the machine
// hides is left out. `root`: a folder that stands for /, in tests.
std::vector<HealthCheck> CheckQuiet(const std::string& root = "");

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_QUIET_CHECK_H_

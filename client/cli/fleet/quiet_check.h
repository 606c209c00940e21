#ifndef HONE_CLIENT_CLI_FLEET_QUIET_CHECK_H_
#define HONE_CLIENT_CLI_FLEET_QUIET_CHECK_H_

#include <string>
#include <vector>

#include "client/cli/fleet/health_check.h"

namespace hone::cli {

// Checks for sources of measurement noise on this machine: the frequency governor, turbo, isolated
// cores, interrupts, steal time, load, huge pages. Checks whose files cannot be read are left out.
// `root` replaces / in tests.
std::vector<HealthCheck> CheckQuiet(const std::string& root = "");

// A warning about sources of noise that come and go, for a command that is about to measure on this
// machine; "" if it is quiet.
std::string NoiseNow(const std::string& root = "");

// A shell script that makes this machine as quiet as it can be made without a reboot.
std::string PrepareScript(const std::string& root = "");

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_FLEET_QUIET_CHECK_H_

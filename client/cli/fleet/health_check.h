#ifndef HONE_CLIENT_CLI_FLEET_HEALTH_CHECK_H_
#define HONE_CLIENT_CLI_FLEET_HEALTH_CHECK_H_

#include <string>
#include <vector>

#include "client/cli/globals.h"

namespace hone::cli {

// The result of one check of `hone doctor`.
struct HealthCheck {
  enum class State { kOk, kWarning, kProblem };
  std::string name;
  State state = State::kOk;
  std::string finding;
  std::string advice;  // what to do; may be ""
  // Shell commands that follow the advice, to be run as root; "" if there are none.
  std::string commands = "";
};

// "ok", "warning", "problem".
const char* HealthStateName(HealthCheck::State state);

// The instruction set, the target and the cores. See quiet_check.h for sources of noise.
std::vector<HealthCheck> CheckMachine();
// Whether all of Hone's programs are in `program_dir`, and whether hone-builder starts, which needs
// LLVM.
std::vector<HealthCheck> CheckPrograms(const std::string& program_dir);
// Whether the user's data folder is writable and has free space.
std::vector<HealthCheck> CheckDataFolder();
// Whether the given server answers, can read its store, and has workers that take the work of each
// target. If no server is given, starts the private server and checks only that it can read its
// store. The target is not used.
std::vector<HealthCheck> CheckServer(const Globals& globals);
// Whether the target of the command line can be used. No check if none is given. REQUIRES: without
// a server, the process has one thread.
std::vector<HealthCheck> CheckTarget(const Globals& globals);
// Whether `port` of 127.0.0.1 is free for a hone-server that is started by hand.
std::vector<HealthCheck> CheckPort(int port);

// The connection to the given server: encryption, token, own certificate, and clock skew.
std::vector<HealthCheck> CheckSecurity(const Globals& globals);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_FLEET_HEALTH_CHECK_H_

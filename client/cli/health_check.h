#ifndef HONE_CLIENT_CLI_HEALTH_CHECK_H_
#define HONE_CLIENT_CLI_HEALTH_CHECK_H_

#include <string>
#include <vector>

#include "client/cli/globals.h"

namespace hone::cli {

// One thing that `hone doctor` looked at.
struct HealthCheck {
  enum class State { kOk, kWarning, kProblem };
  std::string name;
  State state = State::kOk;
  std::string finding;
  std::string advice;  // what to do about it; "" when it is fine
};

// "ok", "warning", "problem".
const char* HealthStateName(HealthCheck::State state);

// The instruction set, the target and the cores. What disturbs measuring: quiet_check.h.
std::vector<HealthCheck> CheckMachine();
// Hone's programs beside this one, and whether the builder finds its LLVM. `program_dir`: their
// folder.
std::vector<HealthCheck> CheckPrograms(const std::string& program_dir);
// The user's data folder: writable, space.
std::vector<HealthCheck> CheckDataFolder();
// Reaches the server that was named, or starts the private one, which opens the store.
std::vector<HealthCheck> CheckServer(const Globals& globals);
// The port that hone-server listens on when it is started by hand.
std::vector<HealthCheck> CheckPort(int port);

// How a server that was named is reached: encryption, own certificate, token, and how far its clock
// is off.
std::vector<HealthCheck> CheckSecurity(const Globals& globals);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_HEALTH_CHECK_H_

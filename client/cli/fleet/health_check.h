#ifndef HONE_CLIENT_CLI_FLEET_HEALTH_CHECK_H_
#define HONE_CLIENT_CLI_FLEET_HEALTH_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "common/target/device_list.h"

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
// target, and what each of them has measured about its machine (machine_constants.h). If no server
// is given, starts the private server and checks only that it can read its store. The target is not
// used.
std::vector<HealthCheck> CheckServer(const Globals& globals);
// Whether the target of the command line can be used. No check if none is given. REQUIRES: without
// a server, the process has one thread.
std::vector<HealthCheck> CheckTarget(const Globals& globals);
// Whether `port` of 127.0.0.1 is free for a hone-server that is started by hand.
std::vector<HealthCheck> CheckPort(int port);

// The connection to the given server: encryption, token, own certificate, and clock skew.
std::vector<HealthCheck> CheckSecurity(const Globals& globals);

// Checks the GPUs of a machine: one check for each, with its problem if it has one. For each
// interface without a device, a check gives the reason, which is not a problem. There is no such
// check for the interface of the target that the command line names, see CheckTarget.
std::vector<HealthCheck> CheckDevices(const absl::StatusOr<target::DeviceList>& list,
                                      absl::string_view target = "");

// Whether this machine can build for NVIDIA's GPUs, from what `hone-builder --describe` prints.
// If it cannot, this is a warning if the machine has such a GPU or if one is the target, and no
// problem otherwise.
std::vector<HealthCheck> CheckNvrtc(const absl::StatusOr<std::string>& description, bool is_needed);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_FLEET_HEALTH_CHECK_H_

#ifndef HONE_CLIENT_CLI_GLOBALS_H_
#define HONE_CLIENT_CLI_GLOBALS_H_

#include <string>

#include "absl/status/status.h"
#include "client/lib/client_config.h"
#include "common/base/command_line.h"
#include "common/rpc/security.h"

namespace hone::cli {

// The options that every command takes, before or after its name.
struct Globals {
  std::string server;             // "": a private server on this machine
  std::string config;             // file; "": the default one, if there is one
  rpc::SecuritySources sources;   // as the command line says
  rpc::ChannelSecurity security;  // once CompleteGlobals has run
  std::string target;             // "native", a preset or a key; "" not given: native
  bool json = false;
};

// Adds them to a command.
void AddGlobals(Command& command, Globals& globals);

// Finds the server and what it asks for: by command line, environment and configuration file (see
// client::CompleteConfig). Errors as there and of rpc::LoadSecurity.
absl::Status CompleteGlobals(Globals& globals);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_GLOBALS_H_

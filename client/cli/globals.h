#ifndef HONE_CLIENT_CLI_GLOBALS_H_
#define HONE_CLIENT_CLI_GLOBALS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/command_line.h"
#include "common/rpc/security.h"

namespace hone::cli {

// The options that every command accepts, before or after its name.
struct Globals {
  std::string server;             // "": a private server on this machine
  std::string config;             // file; "": the default file, if it exists
  bool local = false;             // use the private server whatever else names a server
  rpc::SecuritySources sources;   // from the command line
  rpc::ChannelSecurity security;  // set by CompleteGlobals
  std::string ignored_config;     // set by CompleteGlobals; see client::ClientConfig::ignored
  std::string target;  // "native", "cuda", "opencl", a preset or a key; "" (not given) means native
  bool json = false;
  bool warns_of_store = true;      // a session warns of a damaged store
  absl::Time began = absl::Now();  // of the command, for its time limit
};

// Adds these options to a command.
// `hide_target`: the help does not list --target.
void AddGlobals(Command& command, Globals& globals, bool hide_target = false);
// Adds only the options that say how to reach the server. The help lists them as one group.
void AddConnectionOptions(Command& command, Globals& globals);

// Sets the server and the security settings from the command line, the environment and the
// configuration file (see client::CompleteConfig), and the options that suggested commands repeat.
// Errors as for client::CompleteConfig and rpc::LoadSecurity.
absl::Status CompleteGlobals(Globals& globals);

// Adds to an error of the connection that the configuration file was ignored, if it was.
absl::Status NameIgnoredConfig(const Globals& globals, const absl::Status& error);

// Says how to start a worker of the given server, for hints. REQUIRES: a server is given.
std::string HowToStartWorker(const Globals& globals);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_GLOBALS_H_

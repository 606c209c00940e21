#include "client/cli/globals.h"

#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace hone::cli {

void AddGlobals(Command& command, Globals& globals) {
  const auto add = [&](const char* name, std::string& value, const char* help) {
    command.Add(name, value, help, {NotEmpty()});
  };
  add("--server", globals.server,
      "ADDR of the server, host:port or unix:/path; without it a private server on this machine is "
      "used");
  add("--config", globals.config,
      "FILE that says server, ca, token and certificate; default ~/.config/hone/client.conf");
  add("--ca", globals.sources.ca,
      "FILE with the authorities of the server's certificate, or system: encrypts");
  add("--token-file", globals.sources.token_file, "FILE with your token");
  add("--certificate", globals.sources.certificate, "FILE with your certificate");
  add("--key", globals.sources.key, "FILE with its private key");
  command.AddFlag("--insecure", globals.sources.insecure,
                  "Allow a server on another machine, without encryption");
  add("--target", globals.target,
      "What to make kernels for: native (default), a preset, or a key as other commands print it");
  command.AddFlag("--json", globals.json, "Print one JSON object on one line");
}

absl::Status CompleteGlobals(Globals& globals) {
  HONE_ASSIGN_OR_RETURN(
      const client::ClientConfig config,
      client::CompleteConfig({.server = globals.server, .security = globals.sources},
                             globals.config));
  globals.server = config.server;
  HONE_ASSIGN_OR_RETURN(globals.security, rpc::LoadSecurity(config.security, absl::Now()));
  return absl::OkStatus();
}

}  // namespace hone::cli

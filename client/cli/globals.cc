#include "client/cli/globals.h"

#include "CLI/CLI.hpp"

namespace hone::cli {

void AddGlobals(CLI::App& command, Globals& globals) {
  command.add_option("--server", globals.server,
                     "ADDR of the server, host:port or unix:/path; without it a private server on "
                     "this machine is used");
  command.add_flag("--insecure", globals.insecure,
                   "Allow a server on another machine, without encryption");
  command.add_option_function<std::string>(
      "--target",
      [&globals](const std::string& name) {
        globals.target = name;
        globals.target_given = true;
      },
      "What to make kernels for: native (default), a preset, or a key as other commands print it");
  command.add_flag("--json", globals.json, "Print one JSON object on one line");
}

}  // namespace hone::cli

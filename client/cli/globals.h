#ifndef HONE_CLIENT_CLI_GLOBALS_H_
#define HONE_CLIENT_CLI_GLOBALS_H_

#include <string>

namespace CLI {
class App;
}

namespace hone::cli {

// The options that every command takes, before or after its name.
struct Globals {
  std::string server;             // "": a private server on this machine
  std::string target = "native";  // "native", a preset or a key
  bool target_given = false;
  bool json = false;
  bool insecure = false;
};

// Adds them to a command.
void AddGlobals(CLI::App& command, Globals& globals);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_GLOBALS_H_

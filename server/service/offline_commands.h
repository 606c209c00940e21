#ifndef HONE_SERVER_SERVICE_OFFLINE_COMMANDS_H_
#define HONE_SERVER_SERVICE_OFFLINE_COMMANDS_H_

#include <array>
#include <optional>

#include "common/base/command_line.h"

namespace hone::service {

// Adds restore and merge to the help of the program. If one of them is given when `app` is parsed,
// it was not the first word, so that RunOfflineCommand has not run it.
std::array<const Command*, 2> ListOfflineCommands(Command& app);

// Runs `hone-server restore` or `hone-server merge`, which work on a store that no server has open.
// Returns the exit code; nullopt if the first word is neither of them.
std::optional<int> RunOfflineCommand(int argc, char** argv);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_OFFLINE_COMMANDS_H_

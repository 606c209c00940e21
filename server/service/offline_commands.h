#ifndef HONE_SERVER_SERVICE_OFFLINE_COMMANDS_H_
#define HONE_SERVER_SERVICE_OFFLINE_COMMANDS_H_

#include <optional>

namespace hone::service {

// Runs `hone-server restore` or `hone-server merge`, which work on a store that no server has open.
// Returns the exit code; nullopt if the first word is neither of them.
std::optional<int> RunOfflineCommand(int argc, char** argv);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_OFFLINE_COMMANDS_H_

#ifndef HONE_SERVER_SERVICE_OFFLINE_COMMANDS_H_
#define HONE_SERVER_SERVICE_OFFLINE_COMMANDS_H_

#include <optional>

namespace hone::service {

// `hone-server restore` and `hone-server merge`, which work on a store that no server has open. The
// exit code; nothing where the first word is neither.
std::optional<int> RunOfflineCommand(int argc, char** argv);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_OFFLINE_COMMANDS_H_

#ifndef HONE_SERVER_SERVICE_OFFLINE_COMMANDS_H_
#define HONE_SERVER_SERVICE_OFFLINE_COMMANDS_H_

#include <optional>
#include <string>

#include "common/base/command_line.h"

namespace hone::service {

// `hone-server restore` and `hone-server merge`, which work on a store that no server has open.
class OfflineCommands {
 public:
  // Adds the commands to the program's. This object must outlive the parse.
  explicit OfflineCommands(Command& app);
  OfflineCommands(const OfflineCommands&) = delete;
  OfflineCommands& operator=(const OfflineCommands&) = delete;

  // Runs the command that was given. Returns the exit code; nullopt if neither was given.
  std::optional<int> Run() const;

 private:
  Command& restore_;
  Command& merge_;
  std::string store_;
  std::string from_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_OFFLINE_COMMANDS_H_

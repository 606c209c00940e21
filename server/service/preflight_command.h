#ifndef HONE_SERVER_SERVICE_PREFLIGHT_COMMAND_H_
#define HONE_SERVER_SERVICE_PREFLIGHT_COMMAND_H_

#include <optional>
#include <string>
#include <vector>

namespace hone::service {

// Returns the command by which a server starts its own program to check a job
// (task/child_preflight.h).
std::vector<std::string> PreflightCommand();

// Runs this command: does the first steps of the job that it reads from standard input. The command
// is not for users, so the help does not list it. Returns the exit code; nullopt if the first word
// is another one.
std::optional<int> RunPreflightCommand(int argc, char** argv);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_PREFLIGHT_COMMAND_H_

#ifndef HONE_SERVER_SERVICE_PREFLIGHT_COMMAND_H_
#define HONE_SERVER_SERVICE_PREFLIGHT_COMMAND_H_

#include <optional>
#include <string>
#include <vector>

namespace hone::service {

// The words by which a server starts its own program again to check a job
// (task/child_preflight.h).
std::vector<std::string> PreflightCommand();

// What the program does when it was started by these words: the first work of the job on its
// standard input. Not for people, so no help mentions it. The exit code; nothing where the first
// word is another one.
std::optional<int> RunPreflightCommand(int argc, char** argv);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_PREFLIGHT_COMMAND_H_

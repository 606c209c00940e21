#ifndef HONE_WORKER_BUILDER_LINK_COMMAND_H_
#define HONE_WORKER_BUILDER_LINK_COMMAND_H_

#include <string>
#include <vector>

#include "common/base/command_line.h"

namespace hone::builder {

// The options of `hone-builder link`, which links object files to a shared object.
struct LinkCommandOptions {
  std::string visible;
  std::vector<std::string> files;
};

// Adds the command. `options` must outlive `app`.
const Command& AddLinkCommand(Command& app, LinkCommandOptions& options);

// Runs the command, which writes the shared object to standard output. Returns the exit code: 0;
// kUsageExitCode if a file is missing or the linker refuses it; 1 for every other failure.
int RunLinkCommand(const LinkCommandOptions& options);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_LINK_COMMAND_H_

#ifndef HONE_WORKER_BUILDER_LINK_COMMAND_H_
#define HONE_WORKER_BUILDER_LINK_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/command_line.h"

namespace hone::builder {

// The options of `hone-builder link`, which links object files to a shared object.
struct LinkCommandOptions {
  std::string visible;
  std::vector<std::string> files;
};

// Adds the command. `options` must outlive `app`.
const Command& AddLinkCommand(Command& app, LinkCommandOptions& options);

// Runs the command. Returns the shared object. InvalidArgument: a file is missing, or the linker
// refuses it.
absl::StatusOr<std::string> RunLinkCommand(const LinkCommandOptions& options);

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_LINK_COMMAND_H_

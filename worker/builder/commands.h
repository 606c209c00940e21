#ifndef HONE_WORKER_BUILDER_COMMANDS_H_
#define HONE_WORKER_BUILDER_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/command_line.h"

namespace hone::builder {

// The commands read their files, and then work in a confined process (RunConfined), because traces
// and object files may come from a server.

// The options of `hone-builder code`, which prints the code of a schedule.
struct CodeOptions {
  std::string target = "native";
  bool artifact = false;
  std::string file;
};

// Adds the command. `options` must outlive `app`.
const Command& AddCodeCommand(Command& app, CodeOptions& options);

// Runs the command, and returns the text or artifact to print. Holds the host's timing lock in
// shared mode meanwhile, as a build does. InvalidArgument: the target or the trace is wrong. Other
// errors: the code cannot be generated.
absl::StatusOr<std::string> RunCodeCommand(const CodeOptions& options,
                                           const std::string& lock_path);

// The options of `hone-builder cost`, which models what schedules cost.
struct CostCommandOptions {
  std::string target = "native";
  bool lines = false;
  std::string file;
};

// Adds the command. `options` must outlive `app`.
const Command& AddCostCommand(Command& app, CostCommandOptions& options);

// Runs the command. Returns the cost of the schedule as text, or with `lines` a line of JSON for
// each line of the file. Holds the host's timing lock in shared mode while it models a schedule.
// Errors are those of RunCodeCommand; with `lines`, a schedule that cannot be modelled is an
// answer.
absl::StatusOr<std::string> RunCostCommand(const CostCommandOptions& options,
                                           const std::string& lock_path);

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

#endif  // HONE_WORKER_BUILDER_COMMANDS_H_

#ifndef HONE_WORKER_BUILDER_CODE_COMMAND_H_
#define HONE_WORKER_BUILDER_CODE_COMMAND_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/base/command_line.h"

namespace hone::builder {

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

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_CODE_COMMAND_H_

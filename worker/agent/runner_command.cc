#include "worker/agent/runner_command.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "worker/agent/program_output.h"

namespace hone::agent {
namespace {

absl::Status TryToStart(std::vector<std::string> command) {
  command.push_back("--version");
  return OutputOf(command).status();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> RunnerCommand(const std::string& program_dir) {
  const std::string runner = program_dir + "/hone-runner";
  if (access(runner.c_str(), X_OK) != 0) {
    return absl::NotFoundError(absl::StrCat("hone-runner is not in ", program_dir,
                                            "; name the programs' folder with --program-dir"));
  }
  std::vector<std::string> command = {runner};
  const std::string libc = program_dir + "/libc";
  const std::string loader = libc + "/ld.so";
  if (access(loader.c_str(), X_OK) != 0) return command;
  const absl::Status own = TryToStart(command);
  if (own.ok()) return command;
  command = {loader, "--library-path", libc, runner};
  const absl::Status bundled = TryToStart(command);
  if (bundled.ok()) return command;
  return absl::FailedPreconditionError(
      absl::StrCat("hone-runner works neither with the C library of this machine (", own.message(),
                   ") nor with that of the bundle (", bundled.message(), ")"));
}

}  // namespace hone::agent

#include "worker/builder/commands.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/file.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "common/schedule/trace.h"
#include "common/target/target.h"
#include "worker/builder/build.h"
#include "worker/builder/link.h"

namespace hone::builder {
namespace {

// Returns the bytes of the artifact of a candidate with this schedule.
absl::StatusOr<std::string> ArtifactBytes(const std::string& trace, const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const schedule::TraceFile file, schedule::ParseTraceFile(trace));
  std::string folder = (std::filesystem::temp_directory_path() / "hone-code-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return ErrnoStatus(errno, "make a temporary folder");
  const absl::Cleanup remove = [&] {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
  };
  const record::BuildResponse response = Build({.workload = file.workload.ToText(),
                                                .space = trace,
                                                .decisions = file.parsed.decisions,
                                                .target = target.ToText(),
                                                .artifact_dir = folder});
  if (response.outcome == record::Outcome::kOk) {
    return ReadFile(absl::StrCat(folder, "/", response.artifact_digest));
  }
  return response.outcome == record::Outcome::kInvalid ? absl::InvalidArgumentError(response.detail)
                                                       : absl::AbortedError(response.detail);
}

}  // namespace

const Command& AddCodeCommand(Command& app, CodeOptions& options) {
  Command& command =
      app.AddCommand("code",
                     "Print the code of a schedule: assembly, or source for targets that "
                     "compile it themselves");
  command.Add("--target", options.target,
              absl::StrCat("Target of the code: ", absl::StrJoin(target::TargetNames(), ", "),
                           ", cuda, cuda:N, opencl, opencl:N, or the text form of a target"),
              {ShowDefault(), NotEmpty()});
  command.AddFlag("--artifact", options.artifact,
                  "Write the artifact that workers run: the kernel with its texts");
  command.Add("file", options.file, "FILE.trace with its decisions; \"-\" reads standard input",
              {Required()});
  command.Footer(
      "native, cuda and opencl describe a device of this machine; the other targets need no "
      "device. "
      "The exit code is 2 if the target or the trace is wrong, and 1 if "
      "the code cannot be generated.\n"
      "Example: hone-builder code --target x86-avx512 best.trace");
  return command;
}

absl::StatusOr<std::string> RunCodeCommand(const CodeOptions& options,
                                           const std::string& lock_path) {
  HONE_ASSIGN_OR_RETURN(const target::Target target, ReadTarget(options.target));
  absl::StatusOr<std::string> trace = ReadFile(options.file == "-" ? "/dev/stdin" : options.file);
  if (!trace.ok()) return absl::InvalidArgumentError(trace.status().message());
  HONE_ASSIGN_OR_RETURN(const HostLock lock, HostLock::Acquire(HostLock::Mode::kShared,
                                                               absl::InfiniteFuture(), lock_path));
  return options.artifact ? ArtifactBytes(*trace, target) : CodeText(*trace, target);
}

const Command& AddLinkCommand(Command& app, LinkCommandOptions& options) {
  Command& command = app.AddCommand(
      "link", "Link object files to a shared object, which is written to standard output");
  command.Add("--visible", options.visible, "PREFIX of the functions that are visible",
              {Required(), NotEmpty()});
  command.Add("files", options.files,
              "FILE.o, object files for one machine: x86-64, aarch64 or ARMv7", {Required()});
  command.Footer(
      "The exit code is 2 if a file is missing or is not accepted by the linker.\n"
      "Example: hone-builder link --visible resnet_ kernels.o runtime.o > resnet.so");
  return command;
}

absl::StatusOr<std::string> RunLinkCommand(const LinkCommandOptions& options) {
  std::vector<std::string> objects;
  for (const std::string& file : options.files) {
    absl::StatusOr<std::string> object = ReadFile(file);
    if (!object.ok()) return absl::InvalidArgumentError(object.status().message());
    objects.push_back(*std::move(object));
  }
  const std::vector<absl::string_view> views(objects.begin(), objects.end());
  HONE_ASSIGN_OR_RETURN(std::string triple, TripleOf(views[0]));
  return LinkSharedObject(views, {.triple = std::move(triple), .visible = options.visible});
}

}  // namespace hone::builder

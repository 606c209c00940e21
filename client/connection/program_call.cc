#include "client/connection/program_call.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/command_line.h"
#include "common/base/program.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"

namespace hone::client {

absl::StatusOr<std::string> CallProgram(const ProgramCall& call) {
  const std::string program =
      absl::StrCat(call.program_dir.empty() ? ProgramDir() : call.program_dir, "/", call.program);
  if (access(program.c_str(), X_OK) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(program, " is missing, and it ", call.purpose,
                                                      "; install it in the folder of hone"));
  }
  ProgramRun run{.words = {program}, .input = call.input};
  run.words.insert(run.words.end(), call.words.begin(), call.words.end());
  HONE_ASSIGN_OR_RETURN(const ProgramResult result, RunProgram(run));
  if (result.ok()) return result.output;
  const int status = result.wait_status;
  absl::string_view why = absl::StripAsciiWhitespace(result.errors);
  absl::ConsumePrefix(&why, absl::StrCat(call.program, ": "));
  if (WIFSIGNALED(status)) {
    return absl::AbortedError(absl::StrCat(call.program, " ended with signal ", WTERMSIG(status),
                                           " (", strsignal(WTERMSIG(status)), ")",
                                           why.empty() ? "" : ": ", why));
  }
  return WEXITSTATUS(status) == kUsageExitCode ? absl::InvalidArgumentError(why)
                                               : absl::AbortedError(why);
}

absl::StatusOr<std::string> RunBuilder(const std::vector<std::string>& words,
                                       const std::string& input, const std::string& program_dir) {
  return CallProgram({.program = "hone-builder",
                      .purpose = "generates the code",
                      .words = words,
                      .input = input,
                      .program_dir = program_dir});
}

absl::StatusOr<target::DeviceList> ListDevices(const std::string& program_dir) {
  HONE_ASSIGN_OR_RETURN(const std::string text, CallProgram({.program = "hone-runner",
                                                             .purpose = "lists the devices",
                                                             .words = {"--list-devices"},
                                                             .program_dir = program_dir}));
  absl::StatusOr<target::DeviceList> list = target::DeviceList::FromJson(text);
  if (list.ok()) return list;
  return absl::AbortedError(absl::StrCat("hone-runner --list-devices: ", list.status().message(),
                                         "; hone and hone-runner must be of the same version"));
}

absl::StatusOr<std::string> KernelCode(const std::string& trace, const std::string& target,
                                       const std::string& program_dir) {
  return RunBuilder({"code", "--target", target, "-"}, trace, program_dir);
}

absl::StatusOr<BuiltKernel> BuildKernel(const std::string& trace, const std::string& target,
                                        const std::string& program_dir) {
  HONE_ASSIGN_OR_RETURN(
      const std::string bytes,
      RunBuilder({"code", "--artifact", "--target", target, "-"}, trace, program_dir));
  HONE_ASSIGN_OR_RETURN(record::Artifact artifact, record::DecodeArtifact(bytes));
  return BuiltKernel{std::move(artifact), Sha256Of(bytes)};
}

}  // namespace hone::client

#include "client/lib/program_call.h"

#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/lib/private_server.h"
#include "common/base/command_line.h"
#include "common/base/file.h"
#include "common/base/memory_file.h"
#include "common/base/status_macros.h"

extern char** environ;

namespace hone::client {
namespace {

// Runs a program to its end and returns its wait status.
absl::StatusOr<int> RunToEnd(std::vector<std::string> words, const MemoryFile& input,
                             const MemoryFile& output, const MemoryFile& errors) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input.fd(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output.fd(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, errors.fd(), STDERR_FILENO);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("start ", words[0]));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return ErrnoStatus(errno, absl::StrCat("wait for ", words[0]));
  }
  return status;
}

}  // namespace

absl::StatusOr<std::string> CallProgram(const ProgramCall& call) {
  const std::string program =
      absl::StrCat(call.program_dir.empty() ? ProgramDir() : call.program_dir, "/", call.program);
  if (access(program.c_str(), X_OK) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(program, " is missing, and it ", call.purpose,
                                                      "; install it in the folder of hone"));
  }
  MemoryFile in, out, errors;
  if (in.fd() < 0 || out.fd() < 0 || errors.fd() < 0) {
    return ErrnoStatus(errno, "make a file in memory");
  }
  HONE_RETURN_IF_ERROR(in.Write(call.input));
  std::vector<std::string> line = {program};
  line.insert(line.end(), call.words.begin(), call.words.end());
  HONE_ASSIGN_OR_RETURN(const int status, RunToEnd(std::move(line), in, out, errors));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return out.Read();
  HONE_ASSIGN_OR_RETURN(const std::string text, errors.Read());
  absl::string_view why = absl::StripAsciiWhitespace(text);
  absl::ConsumePrefix(&why, absl::StrCat(call.program, ": "));
  if (WIFSIGNALED(status)) {
    return absl::AbortedError(absl::StrCat(call.program, " ended with signal ", WTERMSIG(status),
                                           " (", strsignal(WTERMSIG(status)), ")",
                                           why.empty() ? "" : ": ", why));
  }
  return WEXITSTATUS(status) == kUsageExitCode ? absl::InvalidArgumentError(why)
                                               : absl::AbortedError(why);
}

}  // namespace hone::client

#include "common/base/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

extern char** environ;

namespace hone {
namespace {

// The array of pointers that a program is started with.
std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> Environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string variable = *each;
    if (!added.contains(variable.substr(0, variable.find('=')))) variables.push_back(variable);
  }
  for (const auto& [name, value] : added) variables.push_back(absl::StrCat(name, "=", value));
  return variables;
}

absl::StatusOr<pid_t> Start(const ProgramRun& run, int input, int output, int errors) {
  std::vector<std::string> words = run.words, variables = Environment(run.environment);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, words[0].c_str(), &files, nullptr, Pointers(words).data(),
                                Pointers(variables).data());
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("start ", words[0]));
  return pid;
}

}  // namespace

std::string ProgramDir() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : program.parent_path().string();
}

absl::StatusOr<ProgramResult> RunProgram(const ProgramRun& run) {
  MemoryFile input, output;
  if (input.fd() < 0 || output.fd() < 0) return ErrnoStatus(errno, "make a file in memory");
  HONE_RETURN_IF_ERROR(input.Write(run.input));
  int errors[2];  // the ends of a pipe
  if (pipe2(errors, O_CLOEXEC) != 0) return ErrnoStatus(errno, "make a pipe");
  const absl::StatusOr<pid_t> pid = Start(run, input.fd(), output.fd(), errors[1]);
  close(errors[1]);
  const absl::Cleanup close_errors = [&] { close(errors[0]); };
  HONE_RETURN_IF_ERROR(pid.status());
  ProgramResult result;
  char piece[4096];
  for (ssize_t size; (size = read(errors[0], piece, sizeof piece)) != 0;) {
    if (size < 0 && errno != EINTR) break;
    if (size < 0) continue;
    result.errors.append(piece, static_cast<size_t>(size));
    if (run.on_errors != nullptr) run.on_errors(*pid, result.errors);
  }
  while (waitpid(*pid, &result.wait_status, 0) < 0) {
    if (errno != EINTR) return ErrnoStatus(errno, absl::StrCat("wait for ", run.words[0]));
  }
  HONE_ASSIGN_OR_RETURN(result.output, output.Read());
  return result;
}

}  // namespace hone

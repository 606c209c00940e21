#include "server/lab/child_process.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/file.h"

extern char** environ;

namespace hone::lab {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The two ends of a pipe; closed in the destructor.
struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { ok = pipe2(ends, O_CLOEXEC) == 0; }
  ~Pipe() {
    Close(0);
    Close(1);
  }
  void Close(int end) {
    if (ends[end] >= 0) close(std::exchange(ends[end], -1));
  }
  bool ok = false;
};

// Returns false at the end of the file.
bool Append(int fd, std::string& text) {
  char buffer[4096];
  const ssize_t size = read(fd, buffer, sizeof(buffer));
  if (size > 0) text.append(buffer, static_cast<size_t>(size));
  return size > 0 || (size < 0 && errno == EINTR);
}

void InterruptTwice(pid_t pid) {
  kill(pid, SIGINT);
  usleep(50000);  // two signals in quick succession would count as one
  kill(pid, SIGINT);
}

// Returns the program's standard output; passes its standard error on.
std::string Follow(pid_t pid, const Pipe& output, const Pipe& errors, bool& interrupted,
                   const std::string& interrupt_at) {
  std::string text;
  std::string said;
  pollfd open[2] = {{.fd = output.ends[0], .events = POLLIN},
                    {.fd = errors.ends[0], .events = POLLIN}};
  while (open[0].fd >= 0 || open[1].fd >= 0) {
    if (poll(open, 2, -1) < 0 && errno != EINTR) break;
    if (open[0].revents != 0 && !Append(open[0].fd, text)) open[0].fd = -1;
    if (open[1].revents == 0) continue;
    const size_t before = said.size();
    if (!Append(open[1].fd, said)) open[1].fd = -1;
    fwrite(said.data() + before, 1, said.size() - before, stderr);
    if (!interrupted && !interrupt_at.empty() && absl::StrContains(said, interrupt_at)) {
      interrupted = true;
      InterruptTwice(pid);
    }
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> RunChild(const std::vector<std::string>& words,
                                     const ChildOptions& options) {
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string variable = *each;
    if (!options.environment.contains(variable.substr(0, variable.find('=')))) {
      variables.push_back(variable);
    }
  }
  for (const auto& [name, value] : options.environment) {
    variables.push_back(absl::StrCat(name, "=", value));
  }
  std::vector<std::string> arguments = words;

  Pipe output, errors;
  if (!output.ok || !errors.ok) return ErrnoStatus(errno, "a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.ends[1], STDERR_FILENO);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, words[0].c_str(), &actions, nullptr,
                                Pointers(arguments).data(), Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  output.Close(1);
  errors.Close(1);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("cannot start ", words[0]));
  bool interrupted = false;
  std::string text = Follow(pid, output, errors, interrupted, options.interrupt_at);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (interrupted || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) return text;
  return absl::AbortedError(absl::StrCat(absl::StrJoin(words, " "), ": ",
                                         WIFEXITED(status)
                                             ? absl::StrCat("exit code ", WEXITSTATUS(status))
                                             : absl::StrCat("ended by signal ", WTERMSIG(status))));
}

std::string ProgramFolder() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  const std::string program(path, size > 0 ? static_cast<size_t>(size) : 0);
  const size_t slash = program.rfind('/');
  return slash == std::string::npos ? "." : program.substr(0, slash);
}

}  // namespace hone::lab

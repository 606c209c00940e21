#include "tests/fakes/cuda/libraries/compile_helper.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/fakes/cuda/emulated_module.h"

namespace hone::fakes {
namespace {

// Two libraries of one process share it.
constexpr char kVariable[] = "HONE_FAKE_COMPILE_HELPER";

bool ReadAll(int fd, void* to, size_t bytes) {
  for (char* next = static_cast<char*>(to); bytes > 0;) {
    const ssize_t n = read(fd, next, bytes);
    if (n <= 0) return false;
    next += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}
bool WriteAll(int fd, const void* from, size_t bytes) {
  for (const char* next = static_cast<const char*>(from); bytes > 0;) {
    const ssize_t n = write(fd, next, bytes);
    if (n <= 0) return false;
    next += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}
bool Receive(int fd, std::string& text) {
  uint64_t size = 0;
  if (!ReadAll(fd, &size, sizeof size)) return false;
  text.resize(size);
  return ReadAll(fd, text.data(), size);
}
bool Send(int fd, const std::string& text) {
  const uint64_t size = text.size();
  return WriteAll(fd, &size, sizeof size) && WriteAll(fd, text.data(), text.size());
}

[[noreturn]] void Serve(int fd) {
  for (std::string source; Receive(fd, source);) {
    const absl::StatusOr<std::string> built = CompileInSourceTree(source);
    // The first character says whether the rest is the module or an error.
    if (!Send(fd, built.ok() ? "+" + *built : absl::StrCat("-", built.status().message()))) break;
  }
  _exit(0);
}

}  // namespace

absl::StatusOr<std::string> CompileInSourceTree(const std::string& source) {
  const int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  absl::StatusOr<std::string> built = absl::InternalError("no folder to return to");
  if (here >= 0 && chdir(HONE_SOURCE_DIR) == 0) {
    built = cuda::BuildEmulatedModule(source);
    if (fchdir(here) != 0) built = absl::InternalError("the folder before is gone");
  }
  if (here >= 0) close(here);
  return built;
}

void StartCompileHelper() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  if (fork() == 0) {
    // Nobody waits for the end of this process's outputs.
    dup2(ends[1], STDIN_FILENO);
    close_range(STDOUT_FILENO, ~0U, 0);
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; ++fd) open("/dev/null", O_WRONLY);
    const int channel = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    Serve(channel);
  }
  close(ends[1]);
  setenv(kVariable, absl::StrCat(ends[0]).c_str(), 1);
}

absl::StatusOr<std::string> CompileForFakes(const std::string& source) {
  const char* const number = getenv(kVariable);
  if (number == nullptr) return CompileInSourceTree(source);
  std::string answer;
  const int fd = atoi(number);
  if (!Send(fd, source) || !Receive(fd, answer) || answer.empty()) {
    return absl::InternalError("the process that compiles has ended");
  }
  const std::string rest = answer.substr(1);
  if (answer[0] == '+') return rest;
  return absl::InvalidArgumentError(rest);
}

}  // namespace hone::fakes

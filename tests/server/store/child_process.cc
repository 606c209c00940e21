#include "tests/server/store/child_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "gtest/gtest.h"

namespace hone::store {

ChildProcess::ChildProcess(const std::function<int(int pipe)>& body) {
  int ends[2];
  if (pipe(ends) != 0) {
    ADD_FAILURE() << "cannot make a pipe";
    return;
  }
  pid_ = fork();
  if (pid_ == 0) {
    close(ends[0]);
    _exit(body(ends[1]));
  }
  close(ends[1]);
  pipe_ = ends[0];
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    Kill();
    Wait();
  }
  close(pipe_);
}

std::string ChildProcess::ReadLine() {
  while (true) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    char bytes[4096];
    const ssize_t size = read(pipe_, bytes, sizeof bytes);
    if (size <= 0) return "";
    buffer_.append(bytes, size);
  }
}

void ChildProcess::Kill() { kill(pid_, SIGKILL); }

int ChildProcess::Wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void WriteLine(int pipe, const std::string& line) {
  const std::string bytes = line + "\n";
  if (write(pipe, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) abort();
}

bool BecomeOrdinaryUser() {
  constexpr uid_t kNobody = 65534;
  return geteuid() != 0 || (setgid(kNobody) == 0 && setuid(kNobody) == 0);
}

}  // namespace hone::store

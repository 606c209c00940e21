#include "worker/agent/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

extern char** environ;

namespace hone::agent {
namespace {

constexpr off_t kErrorTail = 4096;

void Close(int& fd) {
  if (fd >= 0) close(std::exchange(fd, -1));
}

// Polls whether a child has ended, until the deadline. Does not reap it.
bool EndsBefore(pid_t pid, absl::Time deadline) {
  for (;;) {
    siginfo_t ended = {};
    if (waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT | WNOHANG) == 0 &&
        ended.si_pid == pid) {
      return true;
    }
    if (SteadyNow() >= deadline) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
}

// Children that are not reaped. A process id is removed before it can be reused.
ABSL_CONST_INIT absl::Mutex children_mutex(absl::kConstInit);
std::set<pid_t>& Children() ABSL_EXCLUSIVE_LOCKS_REQUIRED(children_mutex) {
  static auto* const children = new std::set<pid_t>;
  return *children;
}
bool ending ABSL_GUARDED_BY(children_mutex) = false;

constexpr absl::Duration kProgramLimit = absl::Seconds(60);

}  // namespace

void ChildProcess::KillAll() {
  absl::MutexLock lock(&children_mutex);
  ending = true;
  for (const pid_t pid : Children()) kill(pid, SIGKILL);
}

std::string ChildEnd::ToString() const {
  if (signal == 0) return absl::StrCat("exit status ", status);
  const char* const name = sigabbrev_np(signal);
  return absl::StrCat(
      "killed by ", name != nullptr ? absl::StrCat("SIG", name) : absl::StrCat("signal ", signal));
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::vector<std::string>& argv) {
  auto child = std::unique_ptr<ChildProcess>(new ChildProcess);
  int to_child[2] = {-1, -1};
  int from_child[2] = {-1, -1};
  child->error_ = memfd_create("hone-child-stderr", MFD_CLOEXEC);
  if (child->error_ < 0 || fcntl(child->error_, F_SETFL, O_APPEND) != 0 ||
      pipe2(to_child, O_CLOEXEC) != 0) {
    return ErrnoStatus(errno, "prepare a child process");
  }
  child->input_ = to_child[1];
  if (pipe2(from_child, O_CLOEXEC) != 0) {
    Close(to_child[0]);
    return ErrnoStatus(errno, "prepare a child process");
  }
  child->output_ = from_child[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child->error_, STDERR_FILENO);
  // The child gets default signal handling, no matter which signals this process ignores or blocks.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);  // the agent handles a terminal's Ctrl-C
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  int error = ECANCELED;
  {
    absl::MutexLock lock(&children_mutex);
    if (!ending) {
      error = posix_spawn(&child->pid_, words[0], &actions, &attributes, words.data(), environ);
    }
    if (error == 0) Children().insert(child->pid_);
  }
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  Close(to_child[0]);
  Close(from_child[1]);
  if (error != 0) {
    child->pid_ = -1;
    if (error == ECANCELED) return absl::CancelledError("the program is ending");
    return ErrnoStatus(error, absl::StrCat("start ", argv[0]));
  }
  return child;
}

ChildProcess::~ChildProcess() {
  Close(input_);
  if (pid_ > 0) {
    Kill();
    Wait(absl::InfiniteFuture());
  }
  Close(output_);
  Close(error_);
}

void ChildProcess::CloseInput() { Close(input_); }

void ChildProcess::Kill() {
  if (!reaped_) kill(pid_, SIGKILL);
}

ChildEnd ChildProcess::Wait(absl::Time deadline) {
  if (reaped_) return end_;
  if (deadline != absl::InfiniteFuture()) {
    int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
    const absl::Duration left = std::max(deadline - SteadyNow(), absl::ZeroDuration());
    pollfd ended = {.fd = pidfd, .events = POLLIN, .revents = 0};
    if (pidfd < 0) {  // before Linux 5.3
      if (!EndsBefore(pid_, deadline)) Kill();
    } else if (poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(left))) <= 0) {
      Kill();
    }
    Close(pidfd);
  }
  siginfo_t ended;
  while (waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  int status = 0;
  {
    absl::MutexLock lock(&children_mutex);
    Children().erase(pid_);
    waitpid(pid_, &status, 0);
  }
  reaped_ = true;
  if (WIFSIGNALED(status)) {
    end_.signal = WTERMSIG(status);
  } else {
    end_.status = WEXITSTATUS(status);
  }
  return end_;
}

absl::Duration ChildProcess::CpuTime() const {
  clockid_t clock;
  timespec time;
  if (reaped_ || clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) {
    return absl::ZeroDuration();
  }
  return absl::DurationFromTimespec(time);
}

std::string ChildProcess::TakeErrorOutput() {
  struct stat file;
  if (fstat(error_, &file) != 0 || file.st_size == 0) return "";
  const off_t begin = std::max<off_t>(0, file.st_size - kErrorTail);
  std::string text(static_cast<size_t>(file.st_size - begin), '\0');
  const ssize_t n = pread(error_, text.data(), text.size(), begin);
  text.resize(std::max<ssize_t>(n, 0));
  if (ftruncate(error_, 0) != 0) return text;  // the next call returns this text again
  return text;
}

absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& command) {
  HONE_ASSIGN_OR_RETURN(const auto child, ChildProcess::Start(command));
  child->CloseInput();
  const absl::Time deadline = SteadyNow() + kProgramLimit;
  std::string text;
  char buffer[4096];
  // Ends with the program or at the deadline, after which Wait kills it.
  for (;;) {
    pollfd ready{.fd = child->output(), .events = POLLIN};
    const int64_t left_ms = absl::ToInt64Milliseconds(deadline - SteadyNow());
    if (left_ms <= 0 || poll(&ready, 1, static_cast<int>(left_ms)) == 0) break;
    const ssize_t n = read(child->output(), buffer, sizeof buffer);
    if (n <= 0) break;
    text.append(buffer, n);
  }
  const ChildEnd end = child->Wait(deadline);
  if (end.signal == 0 && end.status == 0) return text;
  if (end.signal == 0 && end.status == EX_TEMPFAIL) {
    return absl::UnavailableError(absl::StripAsciiWhitespace(child->TakeErrorOutput()));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(absl::StrJoin(command, " "), " failed (", end.ToString(),
                   "): ", absl::StripAsciiWhitespace(child->TakeErrorOutput())));
}

}  // namespace hone::agent

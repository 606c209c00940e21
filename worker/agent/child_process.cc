#include "worker/agent/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

extern char** environ;

namespace hone::agent {
namespace {

constexpr off_t kErrorTail = 4096;
// What a child writes to its standard error beyond this is lost; the write fails.
constexpr off_t kErrorBytes = 1 << 20;

// The environment variables that children get, by name or by a prefix that ends in an underscore:
// what finds libraries, drivers and compilers, and what configures them. Others may be secrets.
constexpr absl::string_view kVariables[] = {
    "PATH", "HOME", "TMPDIR", "TZ", "LANG", "LC_", "LD_LIBRARY_PATH", "LD_PRELOAD",
    "XDG_CACHE_HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "OMP_NUM_THREADS",
    // Drivers of GPUs.
    "CUDA_", "NVIDIA_", "OCL_", "OPENCL_", "POCL_", "MESA_", "RUSTICL_", "HSA_", "ROCR_", "GPU_",
    "NEO_", "IGC_", "MALI_",
    // Sanitizers, and those of Hone.
    "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "HONE_NVRTC", "HONE_FAKE_",
    "HONE_SIMULATED_"};

// Returns the pointers to the variables of this process that children get, and a null.
std::vector<char*> VariablesOfChildren() {
  std::vector<char*> variables;
  for (char** next = environ; next != nullptr && *next != nullptr; ++next) {
    const absl::string_view variable = *next;
    const absl::string_view name = variable.substr(0, variable.find('='));
    const bool passed = std::any_of(
        std::begin(kVariables), std::end(kVariables), [name](absl::string_view allowed) {
          return absl::EndsWith(allowed, "_") ? absl::StartsWith(name, allowed) : name == allowed;
        });
    if (passed) variables.push_back(*next);
  }
  variables.push_back(nullptr);
  return variables;
}

// Returns a file in memory that keeps its size, so that a child cannot fill the memory with its
// standard error.
int MakeErrorFile() {
  const int fd = memfd_create("hone-child-stderr", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd >= 0 && (ftruncate(fd, kErrorBytes) != 0 ||
                  fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)) {
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

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

// Kills a child and all processes that it has started, which are in its group: the driver of a GPU
// may start some. REQUIRES: the child is not reaped.
void KillGroup(pid_t child) { kill(-child, SIGKILL); }

constexpr absl::Duration kProgramLimit = absl::Seconds(60);

}  // namespace

void ChildProcess::KillAll() {
  absl::MutexLock lock(&children_mutex);
  ending = true;
  for (const pid_t pid : Children()) KillGroup(pid);
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
  child->error_ = MakeErrorFile();
  if (child->error_ < 0 || pipe2(to_child, O_CLOEXEC) != 0) {
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
  // Also those that this process has inherited itself.
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
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
  const std::vector<char*> variables = VariablesOfChildren();
  int error = ECANCELED;
  {
    absl::MutexLock lock(&children_mutex);
    if (!ending) {
      error = posix_spawn(&child->pid_, words[0], &actions, &attributes, words.data(),
                          variables.data());
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
  if (!reaped_) KillGroup(pid_);
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
    KillGroup(pid_);  // what it has left
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
  // The child's writes move the position, which the two processes share.
  const off_t end = std::clamp<off_t>(lseek(error_, 0, SEEK_CUR), 0, kErrorBytes);
  if (end == 0) return "";
  const off_t begin = std::max<off_t>(0, end - kErrorTail);
  std::string text(static_cast<size_t>(end - begin), '\0');
  const ssize_t n = pread(error_, text.data(), text.size(), begin);
  text.resize(std::max<ssize_t>(n, 0));
  lseek(error_, 0, SEEK_SET);
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

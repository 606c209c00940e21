#include "server/job/child_preflight.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "common/base/memory_file.h"
#include "common/base/seconds_text.h"
#include "common/base/status_macros.h"
#include "common/base/steady_clock.h"
#include "server/job/actor/job_codec.h"
#include "server/job/search/first_work.h"
#include "spdlog/spdlog.h"

extern char** environ;

namespace hone::job {
namespace {

constexpr size_t kMostPassed = 4096;  // maximum size of passed_, which is then cleared

// Returns a spec with only the fields on which the first work depends.
JobSpec RelevantTo(const JobSpec& spec) {
  return {.workload = spec.workload,
          .target = spec.target,
          .seed = spec.seed,
          .strategy = spec.strategy,
          .cost_model = spec.cost_model,
          .tolerance = spec.tolerance,
          .feature_set = spec.feature_set,
          .space = spec.space,
          .revalidate = spec.revalidate};
}

// A file descriptor that the destructor closes.
class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() { Close(); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

// What a child wrote to its standard output.
struct Report {
  std::string step = kMakingSpaces;  // the last one that began
  std::string error;
};

Report ReadReport(absl::string_view output) {
  Report report;
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    if (absl::ConsumePrefix(&line, "step ")) report.step = std::string(line);
    if (absl::ConsumePrefix(&line, "error ")) report.error = std::string(line);
  }
  return report;
}

absl::Status ShuttingDown() { return absl::CancelledError("the server is shutting down"); }

absl::Duration ProcessorTime(const rusage& usage) {
  return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
}

std::string HowItEnded(int status, bool late, const Report& report, absl::Duration limit) {
  if (late) return absl::StrCat("took longer than ", SecondsText(limit));
  if (!report.error.empty()) return absl::StrCat("failed with ", report.error);
  if (WIFEXITED(status)) return absl::StrCat("ended with exit code ", WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGXCPU) return "took too much processor time";
  if (WTERMSIG(status) == SIGKILL)
    return "was killed, perhaps because the machine ran out of memory";
  return absl::StrCat("crashed with signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)),
                      ")");
}

}  // namespace

void ChildPreflight::Check(const JobSpec& spec, Done done) {
  {
    absl::ReleasableMutexLock lock(&mutex_);
    if (stopped_) {
      lock.Release();
      return std::move(done)(ShuttingDown());
    }
  }
  threads_.Schedule([this, limit = spec.max_time, spec = RelevantTo(spec),
                     done = std::move(done)]() mutable { std::move(done)(CheckNow(spec, limit)); });
}

absl::Status ChildPreflight::CheckNow(const JobSpec& spec, absl::Duration limit) {
  const std::string text = EncodeSpec(spec);
  const Digest digest = DigestOf(text);
  {
    absl::MutexLock lock(&mutex_);
    if (passed_.contains(digest)) return absl::OkStatus();
  }
  MemoryFile input;
  const absl::Status filled = input.Write(text);
  int ends[2] = {-1, -1};
  const bool piped = pipe2(ends, O_CLOEXEC) == 0;
  const OpenFile output(ends[0]);
  OpenFile written(ends[1]);
  const absl::StatusOr<pid_t> child = filled.ok() && piped
                                          ? Start(input.fd(), written.fd())
                                          : ErrnoStatus(errno, "a file or a pipe for the child");
  if (absl::IsCancelled(child.status())) return child.status();
  if (!child.ok()) {
    spdlog::warn("a job begins unchecked, since no process can be started for that: {}",
                 std::string(child.status().message()));
    return absl::OkStatus();
  }
  written.Close();
  HONE_RETURN_IF_ERROR(Follow(*child, output.fd(), limit));
  absl::MutexLock lock(&mutex_);
  if (passed_.size() >= kMostPassed) passed_.clear();
  passed_.insert(digest);
  return absl::OkStatus();
}

absl::StatusOr<pid_t> ChildPreflight::Start(int input, int output) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  // The server blocks or ignores some signals; in the child all signals have their default action.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words = options_.command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  pid_t pid = 0;
  absl::Status failed;
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) {
      failed = ShuttingDown();
    } else if (const int error =
                   posix_spawn(&pid, arguments[0], &files, &attributes, arguments.data(), environ);
               error != 0) {
      failed = ErrnoStatus(error, absl::StrCat("start ", options_.command[0]));
    } else {
      children_.insert(pid);
    }
  }
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (!failed.ok()) return failed;
  return pid;
}

absl::Status ChildPreflight::Follow(pid_t pid, int output, absl::Duration job_limit) {
  const bool is_jobs = job_limit > absl::ZeroDuration() && job_limit < options_.limit;
  const absl::Duration limit = is_jobs ? job_limit : options_.limit;
  const SteadyClock clock;
  const absl::Time deadline = clock.Now() + limit;
  std::string text;
  bool late = false;
  while (true) {  // until its output ends, when it exits
    const absl::Duration left = std::max(deadline - clock.Now(), absl::ZeroDuration());
    pollfd wait{.fd = output, .events = POLLIN, .revents = 0};
    const int ready = poll(&wait, 1, late ? -1 : static_cast<int>(absl::ToInt64Milliseconds(left)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      late = true;
      kill(pid, SIGKILL);
      continue;
    }
    char buffer[4096];
    const ssize_t size = read(output, buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(buffer, static_cast<size_t>(size));
  }
  bool stopped;
  {
    absl::MutexLock lock(&mutex_);
    children_.erase(pid);
    stopped = stopped_;
  }
  int status = 0;
  rusage usage{};
  while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  if (stopped) return ShuttingDown();
  if (late && is_jobs) return TimeWasOver(limit, ReadReport(text).step);
  if (late && ProcessorTime(usage) < options_.limit * options_.least_share) {
    spdlog::warn("a job begins unchecked, since its trial got no processor time for {}",
                 SecondsText(options_.limit));
    return absl::OkStatus();
  }
  const Report report = ReadReport(text);
  return absl::AbortedError(absl::StrCat(
      "a test run of the job in a separate process ",
      HowItEnded(status, late, report, options_.limit), " while ", report.step,
      "; the server did not start the job. This is a defect of Hone: please report the workload"));
}

void ChildPreflight::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    for (const pid_t pid : children_) kill(pid, SIGKILL);
  }
  threads_.Stop();
}

}  // namespace hone::job

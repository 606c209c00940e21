#include "worker/runner/limits.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/target/host.h"

namespace hone::runner {
namespace {

// Read by the signal handler; written only while no timer runs.
int deadline_fd = -1;
std::string* deadline_words = nullptr;

void OnDeadline(int) {
  if (deadline_words == nullptr) return;
  WriteLastWords(deadline_fd, *deadline_words);
  _exit(0);
}

}  // namespace

void WriteLastWords(int fd, const std::string& words) {
  const char* next = words.data();
  size_t left = words.size();
  while (left > 0) {
    const ssize_t n = write(fd, next, left);
    if (n <= 0) break;
    next += n;
    left -= static_cast<size_t>(n);
  }
}

absl::Status SetUpOpenMp() {
  constexpr const char* kMarker = "HONE_RUNNER_OPENMP";
  if (getenv(kMarker) != nullptr) return absl::OkStatus();
  const std::string threads = absl::StrCat(target::UsableCores());
  setenv("OMP_NUM_THREADS", threads.c_str(), 1);
  setenv("OMP_DYNAMIC", "false", 1);
  setenv("OMP_PROC_BIND", "close", 1);
  setenv("OMP_PLACES", "threads", 1);
  unsetenv("OMP_WAIT_POLICY");
  // Threads wait actively for the gaps between kernels, but free the cores for builders soon after
  // a batch.
  setenv("GOMP_SPINCOUNT", "200000", 1);
  setenv(kMarker, "1", 1);
  // The process's command line, which begins with the program loader if that was started.
  const absl::StatusOr<std::string> line = ReadFile("/proc/self/cmdline");
  HONE_RETURN_IF_ERROR(line.status());
  std::vector<std::string> words = absl::StrSplit(*line, '\0');
  words.pop_back();  // what follows the last end of a word
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv("/proc/self/exe", argv.data());
  return ErrnoStatus(errno, "execute /proc/self/exe again");
}

int64_t DefaultMemoryBytes() { return target::DescribeHost().memory_bytes / 10 * 9; }

void LimitResources(int64_t memory_bytes, bool driver) {
  const auto limit = [](__rlimit_resource resource, rlim_t value) {
    rlimit current;
    if (getrlimit(resource, &current) != 0) return;
    current.rlim_cur = std::min(value, current.rlim_max);
    setrlimit(resource, &current);
  };
  const int64_t memory = memory_bytes > 0 ? memory_bytes : DefaultMemoryBytes();
#if defined(__SANITIZE_ADDRESS__)
  const bool shadow_memory = true;  // the sanitizer reserves terabytes of addresses
#else
  const bool shadow_memory = false;
#endif
  if (memory > 0 && !shadow_memory) {
    limit(driver ? RLIMIT_DATA : RLIMIT_AS, static_cast<rlim_t>(memory));
  }
  // Not every system allows this; then the kernel's default applies.
  if (FILE* const score = fopen("/proc/self/oom_score_adj", "we"); score != nullptr) {
    fputs("1000", score);
    fclose(score);
  }
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, driver ? 1024 : 256);
}

Deadline::Deadline(absl::Duration limit, int fd, std::string last_words) {
  deadline_fd = fd;
  deadline_words = new std::string(std::move(last_words));
  struct sigaction action = {};
  action.sa_handler = OnDeadline;
  sigaction(SIGALRM, &action, nullptr);
  itimerval timer = {};
  timer.it_value = absl::ToTimeval(std::max(limit, absl::Milliseconds(1)));
  setitimer(ITIMER_REAL, &timer, nullptr);
}

Deadline::~Deadline() {
  const itimerval off = {};
  setitimer(ITIMER_REAL, &off, nullptr);
  delete std::exchange(deadline_words, nullptr);
}

}  // namespace hone::runner

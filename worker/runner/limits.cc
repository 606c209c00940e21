#include "worker/runner/limits.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/target/host.h"
#include "common/target/thread_pool.h"

namespace hone::runner {
namespace {

// Read by the signal handler; written only while no timer runs.
int deadline_fd = -1;
std::string* deadline_words = nullptr;

constexpr size_t kMostWatched = 64;
// Of each thread of SetUpThreads: its open file /proc/self/task/…/schedstat, or -1.
std::vector<int>& Schedules() {
  static auto& schedules = *new std::vector<int>;
  return schedules;
}

int OpenSchedule() {
  return open(absl::StrCat("/proc/self/task/", syscall(SYS_gettid), "/schedstat").c_str(),
              O_RDONLY | O_CLOEXEC);
}

// How long a thread that loses its core usually waits if another process computes.
constexpr double kSwitchNs = 1e6;

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

int KernelThreads() {
  static const int threads = hone_threads_start(target::UsableCores());
  return threads;
}

void SetUpThreads() {
  const std::vector<int> cpus = target::UsableCpus();
  const int threads = KernelThreads();
  Schedules().assign(std::min<size_t>(threads, kMostWatched), -1);
  RunOnEachThread(hone_threads(threads), [&](int64_t thread) {
    if (static_cast<size_t>(thread) < Schedules().size()) Schedules()[thread] = OpenSchedule();
    if (static_cast<size_t>(threads) > cpus.size()) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus[thread], &one);
    sched_setaffinity(0, sizeof one, &one);
  });
}

std::vector<double> KernelThreadsWaitedNs() {
  std::vector<double> waited_ns;
  if (Schedules().empty()) return WaitedBySwitchesNs();
  for (const int schedule : Schedules()) {
    char text[64];
    const ssize_t size = schedule < 0 ? -1 : pread(schedule, text, sizeof text - 1, 0);
    if (size <= 0) return WaitedBySwitchesNs();
    text[size] = 0;
    const std::optional<double> of_thread = WaitedNsOfSchedule(text);
    if (!of_thread.has_value()) return WaitedBySwitchesNs();
    waited_ns.push_back(*of_thread);
  }
  return waited_ns;
}

std::optional<double> WaitedNsOfSchedule(const char* schedstat) {
  char* end = nullptr;
  const uint64_t on_core_ns = strtoull(schedstat, &end, 10);
  if (on_core_ns == 0) return std::nullopt;
  const char* const second = end;
  const uint64_t ready_ns = strtoull(second, &end, 10);
  if (end == second) return std::nullopt;
  return static_cast<double>(ready_ns);
}

std::vector<double> WaitedBySwitchesNs() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return {kSwitchNs * static_cast<double>(usage.ru_nivcsw)};
}

void RunOnEachThread(const HoneRuntime& runtime, absl::FunctionRef<void(int64_t thread)> work) {
  struct Context {
    absl::FunctionRef<void(int64_t)> work;
    const int threads;
    std::atomic<int> arrived;
  } context{work, runtime.threads, 0};
  runtime.parallel_for(
      &runtime, runtime.threads, 0, runtime.threads,
      [](void* argument, int64_t begin, int64_t end, int64_t thread) {
        Context& all = *static_cast<Context*>(argument);
        // Nobody takes over the part of another thread, because all wait here. (A runtime without
        // other threads makes one part of all.)
        all.arrived += static_cast<int>(end - begin);
        for (int waits = 0; all.arrived < all.threads; ++waits) {
          if (waits > 1000) sched_yield();
        }
        all.work(thread);
      },
      &context);
}

int64_t DefaultMemoryBytes() { return target::DescribeHost().memory_bytes / 10 * 9; }

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

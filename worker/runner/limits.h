#ifndef HONE_WORKER_RUNNER_LIMITS_H_
#define HONE_WORKER_RUNNER_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/target/hone_runtime.h"

namespace hone::runner {

// Starts the threads of kernels, target::UsableCores() with the calling one, and pins each to a CPU
// of its own, so that times do not depend on where the system puts them. They use the same pool as
// exported networks. REQUIRES: called by the sandbox (SandboxOptions::start_threads).
void SetUpThreads();

// The number of threads that SetUpThreads has started, or else target::UsableCores() at the first
// call. (The affinity of a pinned thread does not tell.)
int KernelThreads();

// Returns for how long each thread that SetUpThreads has started (at most 64) has been ready to run
// and had no core, in total nanoseconds. As WaitedBySwitchesNs if the kernel does not tell or if
// there are no such threads.
std::vector<double> KernelThreadsWaitedNs();

// The second number of a thread's /proc/…/schedstat: nanoseconds in which it was ready and had no
// core. The first one is nanoseconds on a core. nullopt: the kernel keeps no such statistics, and
// says "0 0 0".
std::optional<double> WaitedNsOfSchedule(const char* schedstat);

// One number: an estimate of the same for all threads of this process together, from how often they
// have lost a core.
std::vector<double> WaitedBySwitchesNs();

// Calls `work` with the numbers of all threads of the runtime at the same time, each on a thread of
// its own.
void RunOnEachThread(const HoneRuntime& runtime, absl::FunctionRef<void(int64_t thread)> work);

// Returns the memory that kernels may use by default: nine tenths of the machine's. 0: unknown.
int64_t DefaultMemoryBytes();

// Writes all of `words` to `fd`, or as much as possible. Safe in a signal handler.
void WriteLastWords(int fd, const std::string& words);

// A deadline that a stuck kernel cannot prevent: when the time is up, `last_words` are written to
// `fd` and the process exits. Works from a signal handler. At most one per process at a time.
class Deadline {
 public:
  Deadline(absl::Duration limit, int fd, std::string last_words);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
};

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_LIMITS_H_

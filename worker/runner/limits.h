#ifndef HONE_WORKER_RUNNER_LIMITS_H_
#define HONE_WORKER_RUNNER_LIMITS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hone::runner {

// OpenMP reads its settings from the environment when it is loaded: one pinned thread per usable
// core, with a few milliseconds of active waiting. Sets these variables and re-executes this
// program with its command line, unless they are set already. Returns OK if nothing is left to do.
// Internal: execv failed.
absl::Status SetUpOpenMp();

// Returns the memory that kernels may use by default: nine tenths of the machine's. 0: unknown.
int64_t DefaultMemoryBytes();

// Limits what a faulty kernel can do to the machine: at most `memory_bytes` of address space (0:
// DefaultMemoryBytes), no core files, few open files, and the highest OOM score. With the
// `driver` of a GPU, which reserves far more addresses than it uses, the limit counts only memory
// that is private and writable.
void LimitResources(int64_t memory_bytes = 0, bool driver = false);

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

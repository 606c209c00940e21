#ifndef HONE_WORKER_RUNNER_LIMITS_H_
#define HONE_WORKER_RUNNER_LIMITS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace hone::runner {

// OpenMP reads its settings when it is loaded: threads pinned one to a core, as many as there are
// usable cores, and waiting actively for a few milliseconds. Sets them and executes this program
// again, unless they are set already. Returns only when nothing is left to do, or with Internal
// when executing fails.
absl::Status SetUpOpenMp(char** argv);

// Address space at most `memory_bytes` (0: nine tenths of the memory), no core files, few open
// files, and the first to go when memory runs out: what a wild kernel may do to the machine.
void LimitResources(int64_t memory_bytes = 0);

// Writes all of it, as far as `fd` takes it. Safe in a signal handler.
void WriteLastWords(int fd, const std::string& words);

// An end that a stuck kernel cannot prevent: when the time is up, `last_words` are written to `fd`
// and the process exits. Works from a signal handler; what it holds is freed by the kernel. One at
// a time per process.
class Deadline {
 public:
  Deadline(absl::Duration limit, int fd, std::string last_words);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
};

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_LIMITS_H_

#ifndef HONE_WORKER_RUNNER_FILE_GUARD_H_
#define HONE_WORKER_RUNNER_FILE_GUARD_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hone::runner {

// What Landlock (Linux 5.13; kernel documentation, "Landlock: unprivileged access control") can
// guard here: 0 nothing, 1 and above files.
int LandlockVersion();

// From now on this thread and those that it starts open nothing but the system's libraries,
// /proc/self, /sys/devices and `readable` for reading, and files in `writable` for writing; where
// the kernel can, they also signal no process outside. REQUIRES no_new_privs. NotFound: a path of
// the two lists cannot be opened. Nothing happens where LandlockVersion() is 0.
absl::Status GuardFiles(const std::vector<std::string>& readable,
                        const std::vector<std::string>& writable);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_FILE_GUARD_H_

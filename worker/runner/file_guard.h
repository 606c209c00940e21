#ifndef HONE_WORKER_RUNNER_FILE_GUARD_H_
#define HONE_WORKER_RUNNER_FILE_GUARD_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hone::runner {

// Restricts this thread and the threads that it starts later. They can open only the system's
// libraries, /proc/self, /sys/devices and `readable` for reading, only files in `writable` for
// writing, and device files and folders in `devices` for any access. Where the kernel supports it,
// they also cannot signal other processes. Does nothing before Linux 5.13, which has no Landlock
// (kernel documentation, "Landlock: unprivileged access control"). REQUIRES no_new_privs. NotFound:
// a path of the lists cannot be opened.
absl::Status GuardFiles(const std::vector<std::string>& readable,
                        const std::vector<std::string>& writable,
                        const std::vector<std::string>& devices = {});

// Returns the version of this system's Landlock; 0: it has none.
long FileGuardVersion();

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_FILE_GUARD_H_

#ifndef HONE_WORKER_SANDBOX_GUARDS_H_
#define HONE_WORKER_SANDBOX_GUARDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hone::sandbox {

// Returns the version of this system's Landlock; 0: it has none.
long FileGuardVersion();

// Restricts this thread and the threads that it starts later. They can open only the system's
// libraries, /proc/self, /sys/devices and `readable` for reading, only files in `writable` for
// writing, and device files and folders in `devices` for any access. Where the kernel supports it,
// they also cannot signal other processes. REQUIRES no_new_privs. Unavailable: this system has no
// Landlock, which is part of Linux 5.13 and later (kernel documentation, "Landlock: unprivileged
// access control"). NotFound: a path of the lists cannot be opened.
absl::Status GuardFiles(const std::vector<std::string>& readable,
                        const std::vector<std::string>& writable,
                        const std::vector<std::string>& devices);

// Whether this system can filter system calls. User-mode emulators cannot.
bool HasSystemCallFilters();

// Unavailable: this system has no Landlock, or cannot filter system calls (seccomp), so that code
// of clients cannot be confined; the message says what to do about it.
absl::Status CheckFileGuard();
absl::Status CheckSystemCallFilters();

}  // namespace hone::sandbox

#endif  // HONE_WORKER_SANDBOX_GUARDS_H_

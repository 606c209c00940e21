#ifndef HONE_WORKER_RUNNER_SANDBOX_H_
#define HONE_WORKER_RUNNER_SANDBOX_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hone::runner {

struct SandboxOptions {
  std::vector<std::string> readable;  // files and folders beside the system's libraries
  std::vector<std::string> writable;  // folders
  // Called in a signal handler, with the number of the system call, when something forbidden is
  // tried that no kernel has a reason for; the process ends when it returns. Uses only what is safe
  // in a signal handler.
  void (*forbidden)(int system_call) = nullptr;
};

// Confines this process and every thread that it starts from now on, for good. What a kernel may
// do: compute, map memory, wait, start threads, read the system's libraries and what `readable`
// names. What it may not: open sockets, start programs or processes, signal or trace others, see or
// change other files, gain privileges. seccomp filters system calls (forbidden ones end the
// process, unknown ones fail with EPERM; clone3 is answered with ENOSYS, so that thread libraries
// fall back to clone, whose flags a filter can see); Landlock guards files where the kernel has it
// (Linux 5.13 and later; else files are as open as they are to the user that runs the worker). Call
// it before a second thread exists. Unavailable: this kernel has no seccomp filters. NotFound: a
// path of the options cannot be opened.
absl::Status EnterSandbox(const SandboxOptions& options);

// Whether files are guarded here. A constant of the machine.
bool GuardsFiles();

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_SANDBOX_H_

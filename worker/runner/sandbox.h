#ifndef HONE_WORKER_RUNNER_SANDBOX_H_
#define HONE_WORKER_RUNNER_SANDBOX_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hone::runner {

struct SandboxOptions {
  std::vector<std::string> readable;  // files and folders in addition to the system's libraries
  std::vector<std::string> writable;  // folders
  // The process loads a driver of a GPU, see below.
  bool driver = false;
  std::vector<std::string> devices;  // its files and folders in /dev
  // If this system has no seccomp filters, go on without instead of failing.
  bool may_be_unconfined = false;
  // Called in a signal handler, with the system call's number, when the process tries something
  // that no kernel needs. The process ends when it returns. Must be async-signal-safe.
  void (*forbidden)(int system_call) = nullptr;
};

// Confines this process, and every thread it starts from now on, permanently. A kernel may compute,
// map memory, wait, start threads, and read the system's libraries and the `readable` paths. It may
// not open sockets, start programs or processes, signal or trace others, see or change other files,
// or gain privileges.
//
// seccomp filters system calls: forbidden ones end the process, unknown ones fail with EPERM.
// clone3 fails with ENOSYS, so thread libraries fall back to clone, whose flags a filter can see.
// A driver may also use its devices, and start the system's programs, which are confined like this
// process: PoCL runs a linker for each kernel. It still has no network, no other files and no other
// processes. Forbidden system calls fail instead of ending the process, because drivers try some of
// them at their start. The kernels of real GPUs make no system calls; those of PoCL are code of
// this process.
//
// Landlock guards files on Linux 5.13 and later. On older kernels, kernels can access every file
// that the worker's user can.
//
// REQUIRES: only one thread exists. Unavailable: this system has no seccomp filters. NotFound: a
// path of the options cannot be opened.
absl::Status EnterSandbox(const SandboxOptions& options);

// Whether this system can filter system calls. User-mode emulators cannot.
bool HasSystemCallFilters();

// Returns the version of this system's Landlock; 0: it has none.
long FileGuardVersion();

// Gives GPU drivers what they need: access to the device files and device descriptions of this
// machine and to the folders of LD_LIBRARY_PATH, and an empty scratch folder of this process as the
// only one to write to. Sets environment variables that put caches of compiled kernels into it or
// switch them off. A small process, in its own session, removes the folder when this process ends,
// however it ends. REQUIRES: only one thread exists, the driver is not loaded and the sandbox is
// not entered yet. NotFound, PermissionDenied, ResourceExhausted: the folder or the process cannot
// be made.
absl::Status PrepareForDriver(SandboxOptions& sandbox);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_SANDBOX_H_

#ifndef HONE_WORKER_SANDBOX_SANDBOX_H_
#define HONE_WORKER_SANDBOX_SANDBOX_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hone::sandbox {

// The code that a sandbox is for.
enum class Code {
  kKernel,    // a kernel for this CPU, in this process
  kDriver,    // a driver of a GPU and its kernels
  kCompiler,  // a compiler and a linker, whose input comes from clients
};

struct SandboxOptions {
  Code code = Code::kKernel;
  std::vector<std::string> readable;  // files and folders in addition to the system's libraries
  std::vector<std::string> writable;  // folders
  std::vector<std::string> devices;   // files and folders in /dev
  // If this system has no seccomp filters, go on without instead of failing.
  bool may_be_unconfined = false;
  // The same for Landlock.
  bool may_leave_files_unguarded = false;
  // Starts all threads that the process needs; except with a driver, no others can be started. They
  // can open the same files as this thread.
  std::function<void()> start_threads;
  // Called in a signal handler, with the system call's number, when a kernel tries something that
  // no kernel needs. The process ends when it returns. Must be async-signal-safe. (A compiler is
  // killed by SIGSYS instead.)
  void (*forbidden)(int system_call) = nullptr;
};

// Confines this process and all its threads permanently. A kernel may compute, map memory, wait,
// and read the system's libraries and the `readable` paths. It may not open sockets, start threads,
// programs or processes, signal or trace others, see or change other files, or gain privileges. A
// compiler may do the same, and has a folder to write to.
//
// seccomp filters system calls: forbidden ones end the process, unknown ones fail with EPERM.
// clone3 fails with ENOSYS, so thread libraries fall back to clone, whose flags a filter can see.
// A driver may also use its devices, and start threads and the system's programs, which are
// confined like this process: PoCL runs a linker for each kernel. It still has no network, no other
// files and no other processes. Forbidden system calls fail instead of ending the process, because
// drivers try some of them at their start. The kernels of real GPUs make no system calls; those of
// PoCL are code of this process.
//
// Landlock guards files (guards.h).
//
// REQUIRES: only one thread exists. Unavailable: this system has no seccomp filters, or no
// Landlock. NotFound: a path of the options cannot be opened.
absl::Status EnterSandbox(const SandboxOptions& options);

// Gives GPU drivers what they need: access to the device files and device descriptions of this
// machine and to the folders of LD_LIBRARY_PATH, and an empty scratch folder of this process as the
// only one to write to. Sets environment variables that put caches of compiled kernels into it or
// switch them off. A small process, in its own process group, removes the folder when this process
// ends, however it ends. REQUIRES: only one thread exists, the driver is not loaded and the sandbox
// is not entered yet. NotFound, PermissionDenied, ResourceExhausted: the folder or the process
// cannot be made.
absl::Status PrepareForDriver(SandboxOptions& sandbox);

struct ProcessLimits {
  int64_t memory_bytes = 0;  // of address space; 0: unlimited
  // Count only memory that is private and writable: drivers of GPUs reserve far more addresses than
  // they use.
  bool private_memory = false;
  int64_t file_bytes = 0;  // of each file, also of those in memory; a longer write fails
  int open_files = 256;
  // Threads and processes of this user that may be added to those that exist now; 0: unlimited.
  // Linux does not apply it to root.
  int64_t more_tasks = 0;
};

// Limits what faulty or hostile code in this process can do to the machine. There are no core
// files, and the process has the highest OOM score: if memory runs out, it is the first to end.
void LimitProcess(const ProcessLimits& limits);

}  // namespace hone::sandbox

#endif  // HONE_WORKER_SANDBOX_SANDBOX_H_

#ifndef HONE_WORKER_AGENT_CHILD_PROCESS_H_
#define HONE_WORKER_AGENT_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hone::agent {

// How a process ended.
struct ChildEnd {
  int signal = 0;                // that killed it; 0: it exited
  int status = 0;                // of exit
  std::string ToString() const;  // "killed by SIGSEGV", "exit status 3"
};

// A process that answers on its standard output what it is asked on its standard input. Its
// standard error is kept in memory, so that its last words can go into an outcome. Killed and
// reaped with the object. Thread-compatible.
class ChildProcess {
 public:
  // Starts `argv[0]`, a path. NotFound / PermissionDenied: it cannot be executed.
  // ResourceExhausted: no process or memory.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& argv);
  // For the end of the program: kills every child of this process that is not reaped yet, and lets
  // Start fail with Cancelled from now on. Their objects stay valid. Thread-safe.
  static void KillAll();

  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  int input() const { return input_; }    // write here
  int output() const { return output_; }  // read here

  // The child sees the end of its input.
  void CloseInput();
  // SIGKILL. Nothing when it has ended.
  void Kill();
  // Waits for its end, kills it when the deadline passes first, and reaps it. Later calls give the
  // same.
  ChildEnd Wait(absl::Time deadline);
  // Processor time of all its threads so far; what it held when it has ended.
  absl::Duration CpuTime() const;
  // What it has written to standard error since the last call, the last 4 KiB of it.
  std::string TakeErrorOutput();

 private:
  ChildProcess() = default;
  pid_t pid_ = -1;
  bool reaped_ = false;
  ChildEnd end_;
  int input_ = -1;
  int output_ = -1;
  int error_ = -1;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_CHILD_PROCESS_H_

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
  int signal = 0;                // signal that killed it; 0: it exited
  int status = 0;                // exit status
  std::string ToString() const;  // "killed by SIGSEGV", "exit status 3"
};

// A process that reads requests from its standard input and answers on its standard output. Its
// standard error is kept in memory, to be quoted in an outcome. It inherits no other descriptors,
// and only the environment variables that programs need to find libraries and drivers, because the
// others may be secrets. Killed and reaped in the destructor. Thread-compatible.
class ChildProcess {
 public:
  // Starts `argv[0]`, a path. NotFound / PermissionDenied: it cannot be executed.
  // ResourceExhausted: no process or memory.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& argv);
  // Called at shutdown: kills every child that is not reaped yet, with its processes, and makes
  // Start fail with Cancelled from now on. Their objects stay valid. Thread-safe.
  static void KillAll();

  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  int input() const { return input_; }    // write here
  int output() const { return output_; }  // read here

  // Closes the child's input, so it sees the end of file.
  void CloseInput();
  // Sends SIGKILL to the process and to all that it has started: drivers of GPUs may start some.
  // Does nothing if the process has been reaped.
  void Kill();
  // Waits for the process to end and reaps it; kills it first when the deadline passes. Kills what
  // it has started and not ended. Later calls return the same result.
  ChildEnd Wait(absl::Time deadline);
  // Returns the processor time of all its threads so far; stays constant after its end.
  absl::Duration CpuTime() const;
  // Returns what it has written to standard error since the last call, at most the last 4 KiB of
  // the first MiB. Its writes fail beyond that.
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

// Runs a program to its end and returns its standard output. FailedPrecondition: it fails or takes
// more than a minute; the message has the end of its standard error. Unavailable: it asks to be run
// again later (EX_TEMPFAIL); the message is its own. Other errors as for ChildProcess::Start.
absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& command);

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_CHILD_PROCESS_H_

#ifndef HONE_WORKER_AGENT_RUNNER_CLIENT_H_
#define HONE_WORKER_AGENT_RUNNER_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/record/record.h"
#include "worker/agent/child_folder.h"
#include "worker/agent/child_process.h"

namespace hone::agent {

// Returns the command that starts hone-runner. In a bundle (deploy/board.md), hone-worker is linked
// statically and runs anywhere, but hone-runner loads kernels and drivers and so needs a C library.
// It uses that of the machine if it can, because the machine's drivers are built for it. Otherwise
// the command starts it with the program loader and the C library in the bundle's folder `libc`.
//
// NotFound: hone-runner is not in `program_dir`. FailedPrecondition: neither way works; the message
// has both reasons.
absl::StatusOr<std::vector<std::string>> RunnerCommand(const std::string& program_dir);

struct RunnerOptions {
  std::vector<std::string> command;  // hone-runner and its arguments
  // The command for making references, the only files that a runner writes; empty: `command`. The
  // folder to write to is added.
  std::vector<std::string> reference_command;
  // The client makes a folder in this one, which the process may read. It has the files of the
  // requests that the process works on, and no others: kernels, references and data of other
  // clients are not for this one. Empty: `command` lets the process read the files where they are.
  std::string input_parent;
  // Additional time beyond a request's own limit: waiting for the timing lock, filling inputs,
  // making a reference.
  absl::Duration patience = absl::Minutes(2);
};

// The device's hone-runner process, started on demand and again after a kernel has crashed or hung
// it. Used by one thread, which starts the process; the process ends with that thread.
class RunnerClient {
 public:
  explicit RunnerClient(RunnerOptions options) : options_(std::move(options)) {}

  // Runs requests in order. The next request is sent while one runs, so that the runner keeps the
  // timing lock for the batch. A request of policy "confirm" gets a fresh process. `started` and
  // `done` are called with the request's index, each once, in order.
  //
  // `wanted` is called with the request's index right before the request is sent, also if it is
  // sent again to a new process. A request that is not wanted is not sent and not started; it is
  // done with outcome device_lost.
  //
  // Reports every failure as an outcome. If a kernel kills the process: crash, or out_of_memory if
  // the kernel of the system killed it for that. If it exceeds every limit: run_timeout. If the
  // runner cannot be started: device_lost. The remaining requests run in a new process. A process
  // that died while it was idle is replaced.
  void Run(const std::vector<record::RunRequest>& requests, absl::FunctionRef<bool(size_t)> wanted,
           absl::FunctionRef<void(size_t)> started,
           absl::FunctionRef<void(size_t, record::MeasureResult)> done);

  // Runs a request that makes a reference, with its own patience, in a process of its own. That
  // process can only write to `folder`, where the request's reference_data is. It has ended when
  // this returns.
  record::MeasureResult MakeReference(const record::RunRequest& request, const std::string& folder,
                                      absl::Duration patience);

 private:
  absl::Status MakeInputs();
  // The request with the paths that the process sees.
  record::RunRequest AsGiven(record::RunRequest request) const;
  absl::Status EnsureStarted(std::vector<std::string> command);
  absl::Status Send(const record::RunRequest& request);
  // Sends a request to the process, which has no other one; starts the process if needed. Returns
  // false if a new process does not take the request. Errors: the process cannot be started.
  absl::StatusOr<bool> SendToIdle(const record::RunRequest& request);
  // The answer of a process that makes a reference in the folder. Ends it if it writes much more.
  record::MeasureResult ReceiveReference(const record::RunRequest& request,
                                         const std::string& folder, absl::Duration patience);
  record::MeasureResult Receive(const record::RunRequest& request, absl::Duration patience);
  record::MeasureResult Died();

  const RunnerOptions options_;
  std::unique_ptr<InputFolder> inputs_;
  std::unique_ptr<ChildProcess> child_;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_RUNNER_CLIENT_H_

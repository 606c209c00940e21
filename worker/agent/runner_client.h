#ifndef HONE_WORKER_AGENT_RUNNER_CLIENT_H_
#define HONE_WORKER_AGENT_RUNNER_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/record/record.h"
#include "worker/agent/child_process.h"

namespace hone::agent {

struct RunnerOptions {
  std::vector<std::string> command;  // hone-runner and its arguments
  // The same for making references, which are the only files that a runner writes; empty:
  // `command`.
  std::vector<std::string> reference_command;
  // Beyond a request's own time limit: waiting for the timing lock, inputs, a reference that has to
  // be made.
  absl::Duration patience = absl::Seconds(60);
};

// The device's hone-runner process, started when it is needed and again after a kernel has crashed
// or hung it. One thread uses it, from which the process is started (it ends with that thread).
class RunnerClient {
 public:
  explicit RunnerClient(RunnerOptions options) : options_(std::move(options)) {}

  // Runs requests in order. The next one is sent while one runs, so that the runner keeps the
  // timing lock for the batch; a request of policy "confirm" gets a fresh process. `started` and
  // `done` are called with the request's number, each once, in order. Never fails as such: a kernel
  // that kills the process gives crash (out_of_memory when it was killed for that), one that
  // outlives every limit run_timeout, a runner that cannot be started device_lost; the requests
  // behind it run in a new process.
  void Run(const std::vector<record::RunRequest>& requests, absl::FunctionRef<void(size_t)> started,
           absl::FunctionRef<void(size_t, record::MeasureResult)> done);

  // One request that makes a reference, with its own patience, in a process of its own.
  record::MeasureResult RunOne(const record::RunRequest& request, absl::Duration patience);

  // Ends the process; the next Run starts one.
  void Stop() { child_.reset(); }

 private:
  absl::Status EnsureStarted(const std::vector<std::string>& command);
  absl::Status Send(const record::RunRequest& request);
  record::MeasureResult Receive(const record::RunRequest& request, absl::Duration patience);
  record::MeasureResult Died();

  const RunnerOptions options_;
  std::unique_ptr<ChildProcess> child_;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_RUNNER_CLIENT_H_

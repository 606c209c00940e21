#ifndef HONE_WORKER_AGENT_WORKER_H_
#define HONE_WORKER_AGENT_WORKER_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "hone/v1/worker.pb.h"
#include "worker/agent/bounded_dir.h"
#include "worker/agent/builder_client.h"
#include "worker/agent/call_schedule.h"
#include "worker/agent/candidates.h"
#include "worker/agent/lease_table.h"
#include "worker/agent/reference_kernels.h"
#include "worker/agent/runner_client.h"
#include "worker/agent/server_link.h"
#include "worker/agent/spool.h"

namespace hone::agent {

// The folder of references within the state folder. The number is raised when a workload's
// reference changes, so older references are not used.
inline constexpr char kReferences[] = "/references-4";

struct WorkerOptions {
  std::string worker_id;
  std::string state_dir;  // holds artifacts, references and the spool
  v1::Capabilities capabilities;
  BuilderOptions builder;                        // used when capabilities.can_build
  RunnerOptions runner;                          // used when capabilities.can_run
  absl::Duration run_limit = absl::Seconds(10);  // for one kernel's check and timing
};

// The agent. It keeps the server informed (Synchronize), builds in `build_slots` builder processes,
// and runs kernels in one runner process. The host's timing lock, which builders and the runner
// take themselves, separates building from timing; the agent only groups timings into batches.
// Results are kept, also on disk, until the server has committed them.
class Worker {
 public:
  // Errors: the state folder cannot be used. `link` must outlive the worker.
  static absl::StatusOr<std::unique_ptr<Worker>> Create(WorkerOptions options, ServerLink* link);
  ~Worker();

  // Works until Stop is called. Then kills this program's children, reports finished results (for
  // at most a second) and returns. `connected` is called once, after the server's first answer that
  // does not refuse the worker, and must not block. PermissionDenied: the server refuses the
  // credentials of a worker that it has not accepted before, for example because they are of
  // another name.
  absl::Status Run(absl::AnyInvocable<void() &&> connected);
  // May be called from any thread.
  void Stop();

 private:
  Worker(WorkerOptions options, ServerLink* link, std::unique_ptr<BoundedDir> artifacts,
         std::unique_ptr<BoundedDir> references, std::unique_ptr<Spool> spool);

  // The Synchronize loop.
  int64_t StartCall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answered(int64_t call, absl::StatusOr<v1::SynchronizeResponse> response);
  // Returns when the next call begins if nothing else happens.
  absl::Time NextCall() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return schedule_.Next(leases_.HasNews(), leases_.IsStocked());
  }
  // Logs why a call failed, but not for each of many calls.
  void LogFailure(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Logs if the server starts or stops giving this worker work.
  void LogStandingChange(const v1::SynchronizeResponse& response)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Thread loops.
  void PrepareLoop();
  void RunLoop();
  // Locks and unlocks the mutex ten times a second, which makes waiting threads evaluate their
  // conditions. Timed waits use the wall clock; without this, they would last an hour longer if the
  // clock is set back by an hour.
  void PulseLoop();

  bool BatchIsReady() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(const std::shared_ptr<HeldWork>& work, record::MeasureResult result);
  bool IsStopping();

  const WorkerOptions options_;
  const std::string epoch_;
  ServerLink* const link_;
  const std::unique_ptr<BoundedDir> artifacts_;
  const std::unique_ptr<BoundedDir> references_;
  const std::unique_ptr<Spool> spool_;
  Uploader uploader_;
  ReferenceKernels reference_kernels_;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  LeaseTable leases_ ABSL_GUARDED_BY(mutex_);
  CallSchedule schedule_ ABSL_GUARDED_BY(mutex_);
  absl::Time connected_at_ ABSL_GUARDED_BY(mutex_);  // when the server was last found again
  std::string refused_ ABSL_GUARDED_BY(mutex_);
  absl::Status denied_ ABSL_GUARDED_BY(mutex_);  // see Run
  FailureLog failures_ ABSL_GUARDED_BY(mutex_);
  bool drained_ ABSL_GUARDED_BY(mutex_) = false;
  absl::AnyInvocable<void() &&> connected_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_WORKER_H_

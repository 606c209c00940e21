#ifndef HONE_WORKER_AGENT_WORKER_H_
#define HONE_WORKER_AGENT_WORKER_H_

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "hone/v1/worker.pb.h"
#include "worker/agent/bounded_dir.h"
#include "worker/agent/builder_client.h"
#include "worker/agent/lease_table.h"
#include "worker/agent/runner_client.h"
#include "worker/agent/server_link.h"
#include "worker/agent/spool.h"

namespace hone::agent {

// The folder of references within the state folder. The number is raised when a workload's
// reference changes, so older references are not used.
inline constexpr char kReferences[] = "/references-3";

struct WorkerOptions {
  std::string worker_id;
  std::string state_dir;  // holds artifacts, references and the spool
  v1::Capabilities capabilities;
  BuilderOptions builder;                              // used when capabilities.can_build
  RunnerOptions runner;                                // used when capabilities.can_run
  absl::Duration run_limit = absl::Seconds(10);        // for one kernel's check and timing
  absl::Duration first_run_limit = absl::Seconds(60);  // the same while no best is known
  absl::Duration reference_limit = absl::Minutes(10);  // for making a workload's reference
  int64_t max_artifact_bytes = int64_t{512} << 20;     // limit on disk
  int64_t max_reference_bytes = int64_t{4} << 30;
  int batch = 8;                                        // minimum candidates timed in a row …
  absl::Duration batch_wait = absl::Milliseconds(250);  // … unless one has waited this long
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
  // at most a second) and returns. `connected` is called once, after the server's first answer, and
  // must not block.
  void Run(absl::AnyInvocable<void() &&> connected);
  // May be called from any thread.
  void Stop();

 private:
  Worker(WorkerOptions options, ServerLink* link, std::unique_ptr<BoundedDir> artifacts,
         std::unique_ptr<BoundedDir> references, std::unique_ptr<Spool> spool);

  // The Synchronize loop.
  void StartCall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answered(int64_t number, absl::StatusOr<v1::SynchronizeResponse> response);
  // Returns when the next call begins if nothing else happens.
  absl::Time NextCall() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Thread loops.
  void PrepareLoop();
  void RunLoop();
  void UploadLoop();
  // Locks the mutex ten times a second. A timed wait on a condition uses the wall clock and would
  // last an hour longer if the clock is set back by an hour. The condition is also evaluated at
  // each unlock of the mutex.
  void PulseLoop();

  void Prepare(const std::shared_ptr<HeldWork>& work, BuilderClient& builder);
  void RunBatch(const std::vector<std::shared_ptr<HeldWork>>& batch, RunnerClient& runner);
  bool BatchIsReady() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finds a workload that will run here and has no reference yet; returns false if there is none.
  bool NextReference(std::string& digest, std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Makes the reference data of a workload. Defined with the next five in worker_reference.cc.
  absl::Status MakeReference(const std::string& digest, const std::string& text,
                             RunnerClient& runner);
  // Builds a workload's reference kernel and returns its digest in the artifact folder.
  absl::StatusOr<std::string> BuildReference(const std::string& workload,
                                             const std::string& target);
  // Fetches it from the server instead. NotFound: no builder has uploaded it.
  absl::StatusOr<std::string> FetchReference(const std::string& workload_digest);
  // Uploads the reference kernel for the worker that will run this lease's candidate, or waits
  // until another thread has done so. The candidate may be reported after that.
  void OfferReference(const v1::Lease& lease);
  // Uploads the reference kernel of that digest, or builds one. Returns its digest.
  absl::StatusOr<std::string> SendReference(const v1::Lease& lease, const std::string& name,
                                            std::string digest);

  // Uploads an artifact or a reference kernel. Retries while the server has no room for it.
  absl::Status Upload(const std::string& name, const std::string& bytes);

  void Finish(const std::shared_ptr<HeldWork>& work, record::MeasureResult result);
  bool IsStopping();
  // Logs changes of this worker's standing with the server.
  void Heed(const v1::SynchronizeResponse& response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const WorkerOptions options_;
  const std::string epoch_;
  ServerLink* const link_;
  const std::unique_ptr<BoundedDir> artifacts_;
  const std::unique_ptr<BoundedDir> references_;
  const std::unique_ptr<Spool> spool_;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  LeaseTable leases_ ABSL_GUARDED_BY(mutex_);
  bool news_ ABSL_GUARDED_BY(mutex_) = true;  // the server should be called now
  int64_t last_call_ ABSL_GUARDED_BY(mutex_) = 0;
  struct Call {
    absl::Time begun;
    bool results = false;  // whether it carries results
  };
  absl::flat_hash_map<int64_t, Call> calls_ ABSL_GUARDED_BY(mutex_);  // in progress
  absl::Time next_call_ ABSL_GUARDED_BY(mutex_);                      // not before this, …
  absl::Time next_idle_call_ ABSL_GUARDED_BY(mutex_);  // … nor before this without news
  absl::Time gather_until_ ABSL_GUARDED_BY(mutex_);    // results wait, if there is work left
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;           // consecutive
  // How long the server may hold a call. This is the server's last value, so it never considers
  // this worker lost.
  absl::Duration heartbeat_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(10);
  std::string refused_ ABSL_GUARDED_BY(mutex_);
  bool drained_ ABSL_GUARDED_BY(mutex_) = false;
  absl::AnyInvocable<void() &&> connected_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> uploads_ ABSL_GUARDED_BY(mutex_);
  // Why a reference could not be made, by workload digest. Reported for each candidate; retried
  // later.
  struct ReferenceError {
    absl::Status status;
    absl::Time retry;
  };
  absl::flat_hash_map<std::string, ReferenceError> reference_errors_ ABSL_GUARDED_BY(mutex_);
  // Reference kernels by name that were uploaded, with the time of the next upload, or are being
  // uploaded.
  struct Offer {
    std::string digest;  // "": it could not be built
    absl::Time again = absl::InfinitePast();
  };
  absl::flat_hash_map<std::string, Offer> offered_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<std::string> offering_ ABSL_GUARDED_BY(mutex_);
  // Workloads with a reference, pinned; the most recent last, only a few.
  std::deque<std::string> referenced_ ABSL_GUARDED_BY(mutex_);
  // The best latency seen here, by workload and policy; newer than the value in a lease.
  absl::flat_hash_map<std::string, double> best_ns_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_WORKER_H_

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

// The folder of references in the state folder. Its number rises when a workload comes to have
// another reference than before: what an older version kept is not used.
inline constexpr char kReferences[] = "/references-3";

struct WorkerOptions {
  std::string worker_id;
  std::string state_dir;  // artifacts, references and the spool
  v1::Capabilities capabilities;
  BuilderOptions builder;                              // used when capabilities.can_build
  RunnerOptions runner;                                // used when capabilities.can_run
  absl::Duration run_limit = absl::Seconds(10);        // of one kernel's check and timing
  absl::Duration first_run_limit = absl::Seconds(60);  // the same while no best is known
  absl::Duration reference_limit = absl::Minutes(10);  // for making a workload's reference
  int64_t max_artifact_bytes = int64_t{512} << 20;     // kept on disk
  int64_t max_reference_bytes = int64_t{4} << 30;
  int batch = 8;                                        // candidates timed in a row, at least …
  absl::Duration batch_wait = absl::Milliseconds(250);  // … unless one has waited this long
};

// The agent: keeps the server informed (Synchronize), builds in `build_slots` builder processes,
// and runs in one runner process. Building and timing alternate by the host's timing lock, which
// builders and the runner take themselves; the agent only sees to it that timing comes in batches.
// Results stay, also on disk, until the server has committed them.
class Worker {
 public:
  // Errors: the state folder cannot be used. `link` outlives the worker.
  static absl::StatusOr<std::unique_ptr<Worker>> Create(WorkerOptions options, ServerLink* link);
  ~Worker();

  // Works until Stop is called, then kills this program's children, hands in what is finished (a
  // second at most) and returns. `connected` is called once, after the first answer of the server,
  // and must not block.
  void Run(absl::AnyInvocable<void() &&> connected);
  // From any thread.
  void Stop();

 private:
  Worker(WorkerOptions options, ServerLink* link, std::unique_ptr<BoundedDir> artifacts,
         std::unique_ptr<BoundedDir> references, std::unique_ptr<Spool> spool);

  // The Synchronize loop.
  void StartCall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answered(int64_t number, absl::StatusOr<v1::SynchronizeResponse> response);
  // When the next call begins, if nothing else happens.
  absl::Time NextCall() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The threads' loops.
  void PrepareLoop();
  void RunLoop();
  void UploadLoop();
  // Takes the mutex ten times a second. A timed wait for a condition ends by the wall clock, and
  // would last an hour longer when that is set back by one; but the condition is also looked at
  // whenever somebody lets the mutex go.
  void PulseLoop();

  void Prepare(const std::shared_ptr<HeldWork>& work, BuilderClient& builder);
  void RunBatch(const std::vector<std::shared_ptr<HeldWork>>& batch, RunnerClient& runner);
  bool BatchIsReady() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A workload that will run here and has no reference yet; false when there is none.
  bool NextReference(std::string& digest, std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // worker_reference.cc
  // Makes the reference data of a workload.
  absl::Status MakeReference(const std::string& digest, const std::string& text,
                             RunnerClient& runner);
  // The digest of a workload's reference kernel, which is among the artifacts then.
  absl::StatusOr<std::string> BuildReference(const std::string& workload,
                                             const std::string& target);
  // The same from the server. NotFound: no builder has sent it there.
  absl::StatusOr<std::string> FetchReference(const std::string& workload_digest);
  // Sends the reference kernel for the one who will run what this lease builds, or waits until
  // another thread has: then the candidate may follow.
  void OfferReference(const v1::Lease& lease);
  // Sends the one of that digest, or one that is built for it. Returns its digest.
  absl::StatusOr<std::string> SendReference(const v1::Lease& lease, const std::string& name,
                                            std::string digest);

  // Sends an artifact or a reference kernel; again, while the server has no room for it, which is
  // no failure of anything here.
  absl::Status Upload(const std::string& name, const std::string& bytes);

  void Finish(const std::shared_ptr<HeldWork>& work, record::MeasureResult result);
  bool IsStopping();
  // Logs what the server says of this worker's standing when it changes.
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
  bool news_ ABSL_GUARDED_BY(mutex_) = true;  // something that the server should hear now
  int64_t last_call_ ABSL_GUARDED_BY(mutex_) = 0;
  struct Call {
    absl::Time begun;
    bool results = false;  // it carries some
  };
  absl::flat_hash_map<int64_t, Call> calls_ ABSL_GUARDED_BY(mutex_);  // in progress
  absl::Time next_call_ ABSL_GUARDED_BY(mutex_);                      // never earlier, …
  absl::Time next_idle_call_ ABSL_GUARDED_BY(mutex_);  // … and with nothing to say not before this
  absl::Time gather_until_ ABSL_GUARDED_BY(mutex_);    // results wait, while there is enough to do
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;           // consecutive
  // How long the server may hold a call: what it last said, so that it never takes us for lost.
  absl::Duration heartbeat_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(10);
  std::string refused_ ABSL_GUARDED_BY(mutex_);
  bool drained_ ABSL_GUARDED_BY(mutex_) = false;
  absl::AnyInvocable<void() &&> connected_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> uploads_ ABSL_GUARDED_BY(mutex_);
  // Errors of references that could not be made, by workload digest: said to each candidate, tried
  // again later.
  struct ReferenceError {
    absl::Status status;
    absl::Time retry;
  };
  absl::flat_hash_map<std::string, ReferenceError> reference_errors_ ABSL_GUARDED_BY(mutex_);
  // Reference kernels that were sent, and when they are to be sent again, by their names; and those
  // that are being sent.
  struct Offer {
    std::string digest;  // "": it could not be built
    absl::Time again = absl::InfinitePast();
  };
  absl::flat_hash_map<std::string, Offer> offered_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<std::string> offering_ ABSL_GUARDED_BY(mutex_);
  // Workloads that have one, pinned; the most recent last, a few at most.
  std::deque<std::string> referenced_ ABSL_GUARDED_BY(mutex_);
  // The best latency seen here, by workload and policy: fresher than what a lease was granted with.
  absl::flat_hash_map<std::string, double> best_ns_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_WORKER_H_

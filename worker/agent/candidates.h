#ifndef HONE_WORKER_AGENT_CANDIDATES_H_
#define HONE_WORKER_AGENT_CANDIDATES_H_

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/record/record.h"
#include "worker/agent/bounded_dir.h"
#include "worker/agent/builder_client.h"
#include "worker/agent/child_folder.h"
#include "worker/agent/lease_table.h"
#include "worker/agent/reference_kernels.h"
#include "worker/agent/runner_client.h"
#include "worker/agent/server_link.h"

namespace hone::agent {

// Prepares candidates: builds them in its own builder process, or fetches the artifacts that other
// workers have built. Used by one thread.
struct CandidatePreparer {
  // Returns nullopt if the candidate can run here: its artifact is pinned. Otherwise returns the
  // result of the lease: a failure, or ok if another worker will run the candidate. The server then
  // has the artifact, and the reference kernel if it could be made. If only the digest is wanted, a
  // new builder process builds the candidate, because the one at hand may be what is at fault.
  // Before a candidate of a workload whose reference is missing, the reference kernel is built, so
  // that the thread that measures does not wait for it.
  std::optional<record::MeasureResult> Prepare(HeldWork& work);

  const BuilderOptions& builder_options;
  BuilderClient builder;
  BoundedDir& artifacts;
  BoundedDir& references;
  ServerLink& link;
  Uploader& uploader;
  ReferenceKernels& reference_kernels;
};

// Runs candidates in the device's runner process, and makes the reference data of their workloads
// before that. Remembers the best latencies measured here. Used by one thread; while that thread
// waits, others may call NeedsReference.
class CandidateRunner {
 public:
  struct Options {
    RunnerOptions runner;
    std::string output_parent;  // each process that makes a reference gets a folder in this one
    absl::Duration run_limit;   // for one candidate's check and timing; more while no best is known
    double peak_gflops = 0;     // of the machine
  };
  // The pointers must outlive this object.
  CandidateRunner(Options options, BoundedDir* artifacts, BoundedDir* references,
                  ReferenceKernels* reference_kernels)
      : options_(std::move(options)),
        artifacts_(artifacts),
        references_(references),
        reference_kernels_(reference_kernels),
        runner_(options_.runner) {}

  // Returns whether the reference of a key (record::ReferenceKey) should be made now. After a
  // failure, it is tried again later, or at once if the worker has connected to the server since
  // then.
  bool NeedsReference(const std::string& key, absl::Time connected) const;
  // Makes the reference data of a workload on seeded inputs, or on data of a user. Run reports the
  // reason if this fails. `held` has the keys of the references of what will run here: these are
  // kept, however many there are.
  void MakeReference(const std::string& workload_digest, const std::string& workload,
                     const absl::flat_hash_set<std::string>& held,
                     const std::string& inputs_digest = "");

  // Runs candidates whose artifacts are pinned, and unpins them. Calls `started` and `finished` for
  // each in order, but not `started` if a candidate cannot run or is no longer wanted (see
  // RunnerClient::Run).
  void Run(
      const std::vector<std::shared_ptr<HeldWork>>& batch,
      absl::FunctionRef<bool(const HeldWork&)> wanted, absl::FunctionRef<void(HeldWork&)> started,
      absl::FunctionRef<void(const std::shared_ptr<HeldWork>&, record::MeasureResult)> finished);

 private:
  absl::Status TryToMakeReference(const std::string& key, const std::string& workload_digest,
                                  const std::string& workload, const std::string& inputs_digest);
  // Makes sure that the data of a user are here, and sets their path in the request.
  absl::Status AddInputs(const std::string& digest, record::RunRequest& request) const;
  absl::StatusOr<record::RunRequest> RequestFor(const HeldWork& work) const;
  // The best latency measured here for the lease's job, workload, inputs and policy; 0: none is
  // known.
  double& BestOf(const v1::Lease& lease);

  const Options options_;
  BoundedDir* const artifacts_;
  BoundedDir* const references_;
  ReferenceKernels* const reference_kernels_;
  RunnerClient runner_;
  std::deque<std::string> referenced_;  // keys of references, pinned; the newest last
  struct Failure {
    absl::Status status;
    absl::Time time;
  };
  absl::flat_hash_map<std::string, Failure> failures_;  // to make references
  absl::flat_hash_map<std::string, double> best_ns_;    // by job, reference and policy
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_CANDIDATES_H_

#ifndef HONE_WORKER_AGENT_REFERENCE_KERNELS_H_
#define HONE_WORKER_AGENT_REFERENCE_KERNELS_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "hone/v1/worker.pb.h"
#include "worker/agent/bounded_dir.h"
#include "worker/agent/builder_client.h"
#include "worker/agent/server_link.h"

namespace hone::agent {

// Kernels that compute the references with which candidates' outputs are compared. A machine with a
// builder builds them; a machine without one downloads them from the server, where the builder of
// its candidates uploads them. Thread-safe.
class ReferenceKernels {
 public:
  // `artifacts`, `link` and `uploader` must outlive this object.
  ReferenceKernels(const v1::Capabilities& machine, const BuilderOptions& builder,
                   BoundedDir* artifacts, ServerLink* link, Uploader* uploader);

  // Returns the artifact with the reference kernel of a workload for this machine. Builds it once,
  // while other threads that need it wait. NotFound: there is no builder here, and no other worker
  // has uploaded it. Internal: it cannot be built.
  absl::StatusOr<std::string> Get(const std::string& workload_digest, const std::string& workload);

  // Builds what Get will return for a workload that will run here, unless another thread does so or
  // has done so. REQUIRES: this machine has a builder.
  void BuildAhead(const std::string& workload_digest, const std::string& workload);

  // Makes sure that the data of a user with this digest are in the folder of artifacts. NotFound:
  // the server does not have them.
  absl::Status FetchInputs(const std::string& digest);

  // Uploads the reference kernel for the worker that will run this lease's candidate, or waits
  // until another thread has done so. After that, the candidate may be reported.
  void Offer(const v1::Lease& lease);
  // Forgets which kernels were uploaded, because the server may be a new one.
  void ForgetOffers();

 private:
  bool IsBuilt(const std::string& workload_digest) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // REQUIRES: the caller has added the workload to `building_`.
  absl::StatusOr<std::string> BuildOnce(const std::string& workload_digest,
                                        const std::string& workload);
  absl::StatusOr<std::string> Build(const std::string& workload, const std::string& target);
  // Uploads the artifact, or builds one if it is "" or no longer stored. Returns its digest.
  absl::StatusOr<std::string> Send(const v1::Lease& lease, const std::string& name,
                                   std::string digest);

  const bool can_build_;
  const std::string target_;
  const std::string target_key_;
  const BuilderOptions builder_;
  BoundedDir* const artifacts_;
  ServerLink* const link_;
  Uploader* const uploader_;

  absl::Mutex mutex_;
  struct Sent {
    std::string digest;  // "": it could not be built
    absl::Time again = absl::InfinitePast();
  };
  absl::flat_hash_map<std::string, Sent> sent_ ABSL_GUARDED_BY(mutex_);  // by name
  absl::flat_hash_set<std::string> sending_ ABSL_GUARDED_BY(mutex_);     // names
  struct Built {
    absl::StatusOr<std::string> artifact;
    absl::Time again;  // when a build that failed is tried again
  };
  // By the digest of the workload, as are those that are being built.
  absl::flat_hash_map<std::string, Built> built_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<std::string> building_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_REFERENCE_KERNELS_H_

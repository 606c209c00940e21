#ifndef HONE_WORKER_AGENT_CANDIDATE_PREPARER_H_
#define HONE_WORKER_AGENT_CANDIDATE_PREPARER_H_

#include <optional>

#include "common/record/record.h"
#include "worker/agent/bounded_dir.h"
#include "worker/agent/builder_client.h"
#include "worker/agent/lease_table.h"
#include "worker/agent/reference_kernels.h"
#include "worker/agent/server_link.h"
#include "worker/agent/uploader.h"

namespace hone::agent {

// Prepares candidates: builds them in its own builder process, or fetches the artifacts that other
// workers have built. Used by one thread.
struct CandidatePreparer {
  // Returns nullopt if the candidate can run here: its artifact is pinned. Otherwise returns the
  // result of the lease: a failure, or ok if another worker will run the candidate. The server then
  // has the artifact, and the reference kernel if it could be made.
  std::optional<record::MeasureResult> Prepare(HeldWork& work);

  BuilderClient builder;
  BoundedDir& artifacts;
  ServerLink& link;
  Uploader& uploader;
  ReferenceKernels& reference_kernels;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_CANDIDATE_PREPARER_H_

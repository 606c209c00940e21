#ifndef HONE_SERVER_FLEET_WORK_H_
#define HONE_SERVER_FLEET_WORK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/record/record.h"

namespace hone::fleet {

// The compiler that built an artifact, as the artifact's records name it. "" and 0 if unknown.
struct BuilderVersion {
  std::string compiler;
  int codegen_version = 0;
};
inline BuilderVersion BuilderOf(const record::Environment& environment) {
  return {environment.compiler, environment.codegen_version};
}

// One candidate that a job wants built and measured.
struct WorkItem {
  std::string job_id;
  std::string owner;  // of the job; owners share the workers evenly
  int priority = 0;   // kLowPriority, kNormalPriority or kHighPriority: see fair_share.h

  std::string workload;  // text form
  std::string workload_digest;
  std::string space;  // the design space's text
  std::string space_digest;
  std::vector<int64_t> decisions;
  std::string target;      // text form, for the builder
  std::string target_key;  // only workers whose device has this key may run it
  record::Policy policy;
  double tolerance = 0;
  std::string inputs_digest;  // of the data of a user to measure on; "": seeded inputs
  // The best latency of the task, read when a lease is granted; null or 0 if there is none yet.
  std::shared_ptr<const std::atomic<double>> best_latency_ns;
  // Number of operations that every kernel for this item performs; a multiply-add counts as two. 0
  // if unknown, or if algorithms with fewer operations are allowed.
  double fixed_flops = 0;

  // If set, this artifact is run, and the candidate is not built again.
  std::string artifact_digest;
  BuilderVersion builder;  // of that artifact
  // If set, only this worker runs the item while the worker is connected, because the latencies of
  // several items are compared with each other.
  std::string worker_id;
  // Workers that must not run the item, because another worker must check their result.
  std::vector<std::string> avoid;
};

// The answer to an item.
struct WorkResult {
  record::MeasureResult result;
  std::string worker_id;
  record::Environment environment;  // of the worker that ran it, with the artifact's builder
  double peak_gflops = 0;           // of its device; 0 if unknown
  double read_gbps = 0;             // of its memory; 0 if unknown
};

// Called by the job once the result is committed; the worker may then forget the result. May be
// called from any thread, even after the job was cancelled. Destroying it without a call drops the
// result: the worker is told to forget it when it next reports it.
using Acknowledge = absl::AnyInvocable<void() &&>;

// Called once per item, from any thread and without a lock. It must not block. An error means that
// the item has no result. FailedPrecondition: no registered worker can do the item. NotFound: the
// artifact named in the item is gone. Cancelled: the job was cancelled. ResourceExhausted: the
// queue or the owner's part of it is full; submit the item again later. Not called for items that
// are left when the fleet shuts down.
using WorkDone = absl::AnyInvocable<void(absl::StatusOr<WorkResult>, Acknowledge) &&>;

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_WORK_H_

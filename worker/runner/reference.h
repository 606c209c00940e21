#ifndef HONE_WORKER_RUNNER_REFERENCE_H_
#define HONE_WORKER_RUNNER_REFERENCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ir/workload.h"
#include "worker/runner/check.h"
#include "worker/runner/elements.h"
#include "worker/runner/kernel.h"
#include "worker/runner/signature.h"

namespace hone::runner {

// Returns the seed of a workload's inputs. It depends only on the digest, so one reference serves
// every run.
uint64_t InputSeed(absl::string_view workload_digest);

// A workload's reference outputs in a file, mapped read-only and shared by all processes that check
// against it.
//
// Format, little-endian: "HONEREF2"; the workload's digest, 32 characters; u64 number of outputs;
// u64 elements of each; zeros up to a multiple of 4096 bytes. Then for each filling (kReal,
// kInteger) and each output, elements × 8 bytes each: values (i64 for outputs of i64, else f64),
// f64 magnitudes and, if the workload rounds intermediate values, f64 roundings.
class Reference {
 public:
  // NotFound: no such file. DataLoss: truncated, or not a reference of this workload.
  static absl::StatusOr<std::unique_ptr<Reference>> Open(const std::string& path,
                                                         absl::string_view workload_digest,
                                                         const Signature& signature);
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  Expected Of(Filling filling, int output) const;

 private:
  Reference() = default;
  void* mapping_ = nullptr;
  size_t bytes_ = 0;
  std::vector<Expected> expected_;  // by filling, then output
};

// Returns the size of such a file in bytes, without its header.
int64_t ReferenceBytes(const Signature& signature);

// Makes the file by running the reference kernel, whose buffers are those of ir::ReferenceWorkload.
// The interpreter recomputes some hundred elements as a check. If `kernel` is null, the interpreter
// computes everything, up to some million operations. DataLoss: kernel and interpreter disagree;
// the message names the element. ResourceExhausted: no memory, or the disk is full.
// InvalidArgument: the bounds on most elements of an output are infinite; no kernel was given and
// the workload is too large for the interpreter; or the kernel refuses to run.
absl::Status MakeReference(const ir::Workload& workload, absl::string_view workload_digest,
                           const Kernel* kernel, const std::string& path);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_REFERENCE_H_

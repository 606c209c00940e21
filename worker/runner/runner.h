#ifndef HONE_WORKER_RUNNER_RUNNER_H_
#define HONE_WORKER_RUNNER_RUNNER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/host_lock.h"
#include "common/record/record.h"
#include "worker/runner/elements.h"
#include "worker/runner/kernel.h"
#include "worker/runner/machine_monitor.h"
#include "worker/runner/probe.h"
#include "worker/runner/reference.h"
#include "worker/runner/signature.h"
#include "worker/runner/tensor_memory.h"

namespace hone::runner {

struct RunnerOptions {
  std::string lock_path = HostLock::DefaultPath();
  // How long another timer may hold the lock before the device counts as lost.
  absl::Duration lock_patience = absl::Seconds(30);
  // Looks at the machine while candidates are timed; null: nobody does. Outlives the runner.
  MachineMonitor* monitor = nullptr;
  // Makes what ends the process when a kernel exceeds `limit`; the returned object calls that off.
  // Tests give one that does nothing.
  absl::AnyInvocable<std::shared_ptr<void>(absl::Duration limit)> deadline;
};

// Loads, checks and times kernels (architecture.md, "The measurement"). One thread; the process is
// disposable: a kernel may crash it, hang it, or write over its memory.
//
// What a workload needs – inputs, outputs, the reference – is made once and kept while its
// candidates come; the memory of the workload before is given back. The timing lock is taken for
// the check and the timing, and kept until ReleaseLock, so that a batch of candidates takes it
// once.
//
// A request without artifact_path makes the reference data (reference_path → reference_data) and
// nothing else. One with an artifact whose reference data is not there makes it first.
class Runner {
 public:
  explicit Runner(RunnerOptions options) : options_(std::move(options)) {}

  // Never fails as such. Outcomes: ok; invalid (the workload's text, the kernel's interface, or
  // this CPU); compile_error (the loader refuses the object); wrong_output (also writes outside of
  // the outputs); out_of_memory; device_lost (files that cannot be read, the timing lock is not
  // free).
  record::MeasureResult Run(const record::RunRequest& request);

  // REQUIRES: no Run in progress. Nothing when the lock is not held.
  void ReleaseLock() { lock_.Release(); }

 private:
  // One workload's memory in this process.
  struct Bench {
    std::string digest;
    Signature signature;
    std::vector<std::unique_ptr<TensorMemory>> inputs[2];  // by Filling
    Digest input_digest;                                   // of the real inputs, to notice writes
    std::vector<std::unique_ptr<TensorMemory>> outputs;
    std::unique_ptr<Reference> reference;
    bool exact = false;  // integer inputs give outputs that are exact in any order
    std::vector<void*> Buffers(Filling filling) const;
  };

  absl::Status PrepareBench(const record::RunRequest& request);
  absl::Status MakeReferenceData(const ir::Workload& workload, const record::RunRequest& request);
  absl::Status TakeLock(double peak_gflops);
  absl::StatusOr<record::MeasureResult> Measure(const record::RunRequest& request);
  // Checks the outputs of a run; fills outcome, detail and max_error when wrong. Returns whether
  // they are right.
  bool CheckOutputs(Filling filling, double tolerance, record::MeasureResult& result);
  Digest DigestOfInputs() const;

  RunnerOptions options_;
  HostLock lock_;
  std::unique_ptr<Probe> probe_;
  std::unique_ptr<Bench> bench_;
  std::unique_ptr<TensorMemory> workspace_;  // the largest so far
  std::unique_ptr<TensorMemory> flush_;      // read to empty the caches
};

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_RUNNER_H_

#ifndef HONE_WORKER_RUNNER_RUNNER_H_
#define HONE_WORKER_RUNNER_RUNNER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/host_lock.h"
#include "common/record/record.h"
#include "worker/runner/device.h"
#include "worker/runner/inputs.h"
#include "worker/runner/machine_monitor.h"
#include "worker/runner/perf_counters.h"
#include "worker/runner/reference.h"
#include "worker/runner/signature.h"
#include "worker/runner/timing.h"
#include "worker/runner/timing_lock.h"

namespace hone::runner {

struct RunnerOptions {
  std::unique_ptr<Device> device = MakeCpuDevice();
  std::string lock_path = HostLock::DefaultPath();
  // How long to wait for the lock before the device counts as lost. Another process may hold it for
  // its turn and for one candidate, whose time limit is a minute as long as no best is known.
  absl::Duration lock_patience = absl::Seconds(90);
  // After this time, another process may take the lock before the next candidate. Otherwise a batch
  // of slow kernels would exhaust the patience of the runner of another device.
  absl::Duration lock_turn = absl::Seconds(5);
  // For how long a process that makes a reference keeps the lock while others wait to time kernels.
  absl::Duration reference_turn = absl::Seconds(1);
  // Observes the machine while candidates are timed; may be null. Must outlive the runner.
  MachineMonitor* monitor = nullptr;
  // Workloads whose tensors and reference need more are refused before anything is allocated; 0: no
  // limit.
  int64_t memory_bytes = 0;
  // Larger references are sampled (MakeReference).
  int64_t whole_reference_bytes = kWholeReferenceBytes;
  // Measuring waits while this machine is slowed down, at most `throttle_patience` for a candidate;
  // may be null. Must outlive the runner.
  ThrottleWatch* throttle = nullptr;
  absl::Duration throttle_patience = absl::Seconds(30);
  // Counts what finalists do, in extra runs after their timing; may be null. Must outlive the
  // runner.
  CounterSource* counters = nullptr;
  std::function<void(absl::Duration)> sleep = absl::SleepFor;
  // Returns an object that ends the process when a kernel exceeds `limit`; destroying the object
  // cancels it. Tests pass a function that does nothing.
  absl::AnyInvocable<std::shared_ptr<void>(absl::Duration limit)> deadline;
};

// Loads, checks and times kernels. Single-threaded. The process is disposable: a kernel may crash
// it, hang it, or overwrite its memory.
//
// Inputs, outputs and the reference of a workload are made once and kept for all of its candidates;
// the previous workload's memory is freed. The timing lock is taken for the check and the timing
// and kept until ReleaseLock, so a short batch of candidates takes it once.
//
// Inputs are those of the seed or, if the request names a file, data of a user (inputs.h).
//
// A request without artifact_path only makes the reference data (reference_path → reference_data).
// A request with an artifact makes missing reference data first.
class Runner {
 public:
  explicit Runner(RunnerOptions options) : options_(std::move(options)) {}

  // Reports every failure as an outcome: ok; invalid (the workload's text, the kernel's interface,
  // or this CPU); compile_error (the loader refuses the object); crash (a fault of a kernel on a
  // GPU); wrong_output (also if it writes outside its outputs); out_of_memory; device_lost (a file
  // cannot be read, or the timing lock is not free).
  record::MeasureResult Run(const record::RunRequest& request);

  // Does nothing if the lock is not held. REQUIRES: no Run in progress.
  void ReleaseLock() { lock_.Release(); }

  // As Device::lost.
  bool device_lost() const { return options_.device->lost(); }

 private:
  // The memory of one workload in this process.
  struct Bench {
    std::string key;  // of the workload and its inputs
    Signature signature;
    std::string inputs_name;
    std::vector<std::unique_ptr<DeviceBuffer>> inputs[2];  // by Filling
    Digest input_digest;  // of the real inputs, to detect writes to them
    std::vector<std::unique_ptr<DeviceBuffer>> outputs;
    std::unique_ptr<Reference> reference;
    bool exact = false;  // outputs on integer inputs are exact in any order
    std::vector<DeviceBuffer*> Buffers(Filling filling) const;
  };

  absl::Status CheckMemory(const Signature& signature) const;
  absl::Status PrepareBench(const record::RunRequest& request);
  absl::Status MakeReferenceData(const ir::Workload& workload, const Inputs& inputs,
                                 const record::RunRequest& request);
  // Takes the lock if it is not held. If its turn has ended, others may have it first.
  absl::Status TakeLock(double peak_gflops);
  absl::StatusOr<record::MeasureResult> Measure(const record::RunRequest& request);
  // Runs the kernel once on poisoned memory. This detects elements that it does not write, and
  // reads of workspace that it has not written. Returns nanoseconds.
  absl::StatusOr<double> RunPoisoned(DeviceKernel& kernel, Filling filling);
  // Whether the kernel is not to be run completely: judged on a part of its iterations, it is too
  // slow. `result` then has its estimated latency, or says what the part wrote outside its buffers.
  absl::StatusOr<bool> IsHopelessByPart(DeviceKernel& kernel, double best_ns,
                                        record::MeasureResult& result);
  // Sets the outcome wrong_output, with new buffers for the next candidate. Returns false.
  bool IsWrong(std::string detail, record::MeasureResult& result);
  // Checks that the kernel wrote nothing but its outputs and its workspace. If it wrote more,
  // returns false and sets outcome and detail.
  absl::StatusOr<bool> CheckWrites(DeviceKernel& kernel, Filling filling,
                                   record::MeasureResult& result);
  // Checks the outputs of a run, and what else the kernel wrote. If a check fails, returns false
  // and sets outcome, detail and max_error.
  absl::StatusOr<bool> CheckOutputs(DeviceKernel& kernel, Filling filling, double tolerance,
                                    record::MeasureResult& result);
  // Runs a possible best again on poisoned outputs and checks its results and time, because a
  // kernel could skip work after its first run. Returns false like CheckOutputs.
  absl::StatusOr<bool> CheckAgain(DeviceKernel& kernel, const record::RunRequest& request,
                                  double timed_ns, record::MeasureResult& result);
  absl::StatusOr<Digest> DigestOfInputs();
  // Runs the kernel again and returns the counts of one run (common/record/counters.h).
  // `latency_ns`: of one run.
  absl::StatusOr<std::string> CountRuns(DeviceKernel& kernel, double latency_ns);

  RunnerOptions options_;
  TimingLock lock_;
  absl::Time turn_end_;  // of the lock, if it is held
  std::unique_ptr<Probe> probe_;
  std::unique_ptr<Bench> bench_;
};

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_RUNNER_H_

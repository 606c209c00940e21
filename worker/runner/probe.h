#ifndef HONE_WORKER_RUNNER_PROBE_H_
#define HONE_WORKER_RUNNER_PROBE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/target/hone_runtime.h"
#include "worker/runner/tensor_memory.h"

namespace hone::runner {

// Detects whether the machine has become slower. Runs two short reference kernels: multiply-adds in
// registers on every thread that kernels use, and a streaming read. It is sampled between timings;
// other processes, steal time and throttling all show as a longer time. A sample takes about 0.2
// ms. Owned by the timing thread.
class Probe {
 public:
  virtual ~Probe() = default;
  // Returns the current time divided by the best time so far, the larger ratio of the two kernels.
  // That of the stream is divided by its usual noise. At least 1, apart from noise.
  virtual double Sample() = 0;
  // Returns the time of the fastest multiply-adds among the recent samples, divided by the time
  // they would have taken at the worker's registration. This shows slow phases that outlast a
  // process; it ignores disturbances of single samples.
  virtual double Drift() const = 0;
  // Returns how many times a thread of this process has lost its core to another thread.
  virtual int64_t Preemptions() const = 0;
  // Returns the processor time that all threads of this process have used. Less than the clock's
  // time in a run means that no thread had a core, for example because a thread that was woken had
  // to wait for one. On a device that other processes cannot take, the clock's time.
  virtual double ProcessorNs() const = 0;
};

// Returns the processor time that all threads of this process have used, for implementations.
double ProcessorTimeNs();

// Measures the best times for some milliseconds. `peak_gflops` is the rate of all cores at
// registration; 0: unknown, the best rate in this process is used. REQUIRES: the timing lock is
// held, `runtime` outlives the probe. ResourceExhausted: no memory for the stream.
absl::StatusOr<std::unique_ptr<Probe>> CreateProbe(double peak_gflops, const HoneRuntime& runtime);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_PROBE_H_

#ifndef HONE_WORKER_RUNNER_PROBE_H_
#define HONE_WORKER_RUNNER_PROBE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/runner/tensor_memory.h"

namespace hone::runner {

// Tells whether the machine is as fast as it was: two short reference kernels, multiply-adds in
// registers on every thread that kernels run on, and a streaming read. Sampled between timings;
// interference of other processes, steal time of the hypervisor and throttling all show as a longer
// time. A sample takes about 0.2 ms. Owned by the timing thread.
class Probe {
 public:
  virtual ~Probe() = default;
  // Time now over the best time so far, the larger ratio of the two kernels; ≥ 1 but for noise.
  virtual double Sample() = 0;
  // The multiply-adds of the fastest among the last samples: time they took over the time that they
  // would have taken when the worker registered. Slow phases that last longer than a process show
  // only here; what disturbs single samples does not.
  virtual double Drift() const = 0;
};

// Measures the best times over some milliseconds. `peak_gflops`: what all cores did at
// registration; 0: unknown, the best in this process stands for it. REQUIRES: the timing lock is
// held, and OpenMP is set up as kernels see it. ResourceExhausted: no memory for the stream.
absl::StatusOr<std::unique_ptr<Probe>> CreateProbe(double peak_gflops);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_PROBE_H_

#ifndef HONE_WORKER_RUNNER_PROBE_H_
#define HONE_WORKER_RUNNER_PROBE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/runner/tensor_memory.h"

namespace hone::runner {

// Tells whether the machine is as fast as it was: two short reference kernels, multiply-adds in
// registers on every thread that kernels run on, and a streaming read. Sampled between timings;
// interference of other processes, steal time of the hypervisor and throttling all show as a longer
// time. A sample takes about 0.1 ms. Owned by the timing thread.
class Probe {
 public:
  virtual ~Probe() = default;
  // Time now over the best time so far, the larger ratio of the two kernels; ≥ 1 but for noise.
  virtual double Sample() = 0;
};

// Measures the best times over some milliseconds. REQUIRES: the timing lock is held, and OpenMP is
// set up as kernels see it. ResourceExhausted: no memory for the stream.
absl::StatusOr<std::unique_ptr<Probe>> CreateProbe();

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_PROBE_H_

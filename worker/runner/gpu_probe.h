#ifndef HONE_WORKER_RUNNER_GPU_PROBE_H_
#define HONE_WORKER_RUNNER_GPU_PROBE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/target/gpu_context.h"
#include "worker/runner/peak.h"
#include "worker/runner/timing.h"

namespace hone::runner {

// Makes a probe whose two reference kernels run on a GPU: multiply-adds in registers, and a
// streaming read. Each is sized when the probe is made, so that it takes about 0.2 ms.
// `peak_gflops` is Peak::gflops_all_cores of MeasureGpuPeak at registration; 0: unknown. The
// context must outlive the probe. FailedPrecondition, ResourceExhausted, Unavailable: the device
// cannot run the reference kernels.
absl::StatusOr<std::unique_ptr<Probe>> MakeGpuProbe(target::GpuContext& context,
                                                    double peak_gflops);

// Returns the best rates of the reference kernels, counting compute units as cores. Of an OpenCL
// device, its calibration has the multiply-adds, the memory, and the launch of an empty kernel.
// Latencies, caches, shared memory and barriers are not measured: a kernel would have to know how
// the device places threads and data, and what its compiler removes. The caller holds the timing
// lock. Errors as for MakeGpuProbe.
absl::StatusOr<Peak> MeasureGpuPeak(target::GpuContext& context);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_GPU_PROBE_H_

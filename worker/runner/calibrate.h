#ifndef HONE_WORKER_RUNNER_CALIBRATE_H_
#define HONE_WORKER_RUNNER_CALIBRATE_H_

#include "common/target/target.h"

namespace hone::runner {

// Measures what the cost estimate of kernels needs to know about this CPU, with loops of known cost
// that do not depend on the code generator, whose choices they will guide. Each is timed in rounds,
// and the fastest counts. Takes about 0.5 s, or up to 5 s on a disturbed machine. Values that no
// machine can have are left out. The caller holds the timing lock. Of GPUs, gpu_probe.h measures
// three constants.
target::Calibration MeasureCalibration(const target::Target& host);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_CALIBRATE_H_

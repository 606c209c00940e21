#ifndef HONE_SERVER_FLEET_RESULT_CHECK_H_
#define HONE_SERVER_FLEET_RESULT_CHECK_H_

#include <string>

#include "server/fleet/work.h"
#include "server/fleet/worker.h"

namespace hone::fleet {

// Returns why the result of a run cannot be true; "" if it can. A failed run is always possible.
// The latency of a successful run must be positive, at most an hour, and not shorter than the time
// that the item's operations take at the device's peak; its samples must not be negative. The peak
// was measured when the worker registered, and the device may be faster now. Therefore the peak is
// compared with the latency corrected for the drift (record::SteadyLatencyNs), and may be exceeded
// by a quarter. The peak of an accelerator is not a limit, because it was measured with a single
// kernel, and other kernels may be faster.
std::string WhyImpossible(const WorkItem& work, const record::MeasureResult& result,
                          const Capabilities& device);

// Sets the drift of a result to 1 if only the correction for the drift makes the result faster than
// the peak. In that case, other programs disturbed the measurement of the reference kernel, which
// happens on shared machines. Sets the result's detail to this reason.
void DropImpossibleDrift(const WorkItem& work, const Capabilities& device,
                         record::MeasureResult* result);

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_RESULT_CHECK_H_

#ifndef HONE_SERVER_FLEET_RESULT_CHECK_H_
#define HONE_SERVER_FLEET_RESULT_CHECK_H_

#include <string>

#include "server/fleet/work.h"
#include "server/fleet/worker.h"

namespace hone::fleet {

// Returns why the result of a run cannot be true; "" if it can. A candidate may fail in any way,
// but the latency of a successful run is positive, at most an hour, and not shorter than the item's
// operations take at the device's peak. The peak was measured when the worker registered, and the
// device may be faster now. Therefore the result is corrected for its drift and may exceed the peak
// by a quarter. The peak of an accelerator is no limit, because it is what a single kernel reached.
std::string WhyImpossible(const WorkItem& work, const record::MeasureResult& result,
                          const Capabilities& device);

// Sets the drift of a result to 1 if only the correction for the drift makes the result faster than
// the peak. The measurement of the reference was then disturbed, which happens on shared machines.
// Adds this reason to the result's detail.
void DropImpossibleDrift(const WorkItem& work, const Capabilities& device,
                         record::MeasureResult* result);

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_RESULT_CHECK_H_

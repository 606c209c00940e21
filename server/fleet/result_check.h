#ifndef HONE_SERVER_FLEET_RESULT_CHECK_H_
#define HONE_SERVER_FLEET_RESULT_CHECK_H_

#include <string>

#include "server/fleet/work.h"
#include "server/fleet/worker.h"

namespace hone::fleet {

// Why a worker's result of a run cannot be true; "" if it can. A candidate may fail in any way, but
// one that ran has a latency: a finite time above zero, and no shorter than the item's operations
// take at the device's peak. The peak was measured when the worker registered, which is why the
// result's drift is taken into account and a quarter is allowed for.
std::string WhyImpossible(const WorkItem& work, const record::MeasureResult& result,
                          const Capabilities& device);

// Drops the drift of a result that is faster than the peak only because of it. The reference was
// disturbed then, which happens on shared machines. The result's detail says that.
void DropImpossibleDrift(const WorkItem& work, const Capabilities& device,
                         record::MeasureResult* result);

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_RESULT_CHECK_H_

#ifndef HONE_SERVER_FLEET_RESULT_CHECK_H_
#define HONE_SERVER_FLEET_RESULT_CHECK_H_

#include <string>

#include "server/fleet/work.h"
#include "server/fleet/worker.h"

namespace hone::fleet {

// Why a worker's result of a run cannot be true; "" it can. A candidate may fail in any way, but
// one that is said to have run has a latency: a finite time above zero, no shorter than the item's
// least operations take at the device's peak. The peak is what the device did when it registered
// (the result's drift reckoned in, and a quarter more, for it was measured), and whatever it says
// of itself, at most what cores of its target can do at kMostGigahertz.
std::string WhyImpossible(const WorkItem& work, const record::MeasureResult& result,
                          const Capabilities& device);

// A result that only its drift makes faster than the peak has run beside a disturbed reference, as
// happens on shared machines: it is taken as it was timed, and its detail says so.
void DropImpossibleDrift(const WorkItem& work, const Capabilities& device,
                         record::MeasureResult* result);

// Operations per nanosecond that no device of the target exceeds; infinite when the text is none.
double MostGflops(const std::string& target_text);

inline constexpr double kMostGigahertz = 6.5;

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_RESULT_CHECK_H_

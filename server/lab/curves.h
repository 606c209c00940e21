#ifndef HONE_SERVER_LAB_CURVES_H_
#define HONE_SERVER_LAB_CURVES_H_

#include "server/lab/experiment.h"
#include "server/lab/svg_plot.h"

namespace hone::lab {

// Share of the best known against trials, a line per variant: over the sets the geometric mean of
// the seeds' medians, with its bootstrap interval. The same for the same results.
Plot TrialsPlot(const Results& results);
// The same against seconds of the device.
Plot SecondsPlot(const Results& results);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_CURVES_H_

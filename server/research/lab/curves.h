#ifndef HONE_SERVER_RESEARCH_LAB_CURVES_H_
#define HONE_SERVER_RESEARCH_LAB_CURVES_H_

#include "server/research/lab/experiment.h"
#include "server/research/lab/svg_plot.h"

namespace hone::lab {

// Plots the share of the best known latency against trials, one line per variant: the geometric
// mean over the sets of the seeds' medians, with its bootstrap interval. Deterministic.
Plot TrialsPlot(const Results& results);
// Plots the same against device seconds.
Plot SecondsPlot(const Results& results);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_CURVES_H_

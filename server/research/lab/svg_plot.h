#ifndef HONE_SERVER_RESEARCH_LAB_SVG_PLOT_H_
#define HONE_SERVER_RESEARCH_LAB_SVG_PLOT_H_

#include <string>
#include <vector>

#include "server/research/lab/statistics.h"

namespace hone::lab {

// A line with a band around it.
struct PlotSeries {
  std::string label;
  std::vector<double> x;
  std::vector<Interval> y;  // same length as x
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  double y_min = 0;  // y values are shares up to 1, written as percent
  std::vector<PlotSeries> series;
};

// Returns the plot as an SVG document: axes with labelled ticks, a logarithmic x axis, a line and a
// band per series, and a legend. Values outside the y range are drawn at its edge. The colours suit
// colour-blind readers, and lines also differ by dashes. REQUIRES: a series with a point, positive
// and ascending x values, y_min < 1.
std::string SvgPlot(const Plot& plot);

}  // namespace hone::lab

#endif  // HONE_SERVER_RESEARCH_LAB_SVG_PLOT_H_

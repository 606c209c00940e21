#ifndef HONE_SERVER_LAB_SVG_PLOT_H_
#define HONE_SERVER_LAB_SVG_PLOT_H_

#include <string>
#include <vector>

#include "server/lab/statistics.h"

namespace hone::lab {

// A line with a band around it.
struct PlotSeries {
  std::string label;
  std::vector<double> x;
  std::vector<Interval> y;  // as many as x
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  double y_min = 0;
  double y_max = 1;
  bool percent = true;  // y values are shares, written as percent
  std::vector<PlotSeries> series;
};

// The plot as an SVG document: axes with labelled ticks, x on a logarithmic scale, a line and a
// band per series, a legend. Values outside the y range are drawn at its edge. Colours are told
// apart by the colour-blind, and lines by their dashes. REQUIRES a series with a point, x values
// that are positive and ascending, y_min < y_max.
std::string SvgPlot(const Plot& plot);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_SVG_PLOT_H_

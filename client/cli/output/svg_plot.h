#ifndef HONE_CLIENT_CLI_OUTPUT_SVG_PLOT_H_
#define HONE_CLIENT_CLI_OUTPUT_SVG_PLOT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

// Plots as SVG elements for HTML pages. They need no other files; the page must style the classes
// axis, grid, line, bar and label.
namespace hone::cli {

// Text with the special characters of HTML escaped.
std::string EscapeHtml(absl::string_view text);

// A value over time that stays the same until the next point. Both axes begin at 0. REQUIRES: x
// grows, and all numbers are finite and at least 0.
std::string StepPlot(const std::vector<std::pair<double, double>>& points,
                     absl::string_view x_title, absl::string_view y_title);

struct Bar {
  std::string label;
  double value = 0;  // at least 0
  std::string text;  // the value as text
};
// A horizontal bar for each value, in proportion to the largest one.
std::string BarPlot(const std::vector<Bar>& bars);

// Round numbers from 0 to at least `most`, about four of them.
std::vector<double> Ticks(double most);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_OUTPUT_SVG_PLOT_H_

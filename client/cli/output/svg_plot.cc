#include "client/cli/output/svg_plot.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace hone::cli {
namespace {

std::string Text(double x, double y, absl::string_view anchor, absl::string_view text) {
  return absl::StrFormat(
      "<text class=\"label\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
      EscapeHtml(text));
}

std::string Line(absl::string_view kind, double x1, double y1, double x2, double y2) {
  return absl::StrFormat("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                         kind, x1, y1, x2, y2);
}

std::string Begin(double width, double height) {
  return absl::StrFormat(
      "<svg viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\">\n", width,
      height, width, height);
}

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::vector<double> Ticks(double most) {
  if (!(most > 0)) return {0, 1};
  double step = std::pow(10, std::floor(std::log10(most / 4)));
  for (const double factor : {2.0, 2.5, 2.0}) {  // 1, 2, 5, 10
    if (most / step > 5) step *= factor;
  }
  std::vector<double> ticks = {0};
  while (ticks.back() < most) ticks.push_back(step * static_cast<double>(ticks.size()));
  return ticks;
}

std::string StepPlot(const std::vector<std::pair<double, double>>& points,
                     absl::string_view x_title, absl::string_view y_title) {
  constexpr double kWidth = 720, kHeight = 280, kLeft = 64, kRight = 16, kTop = 24, kBottom = 40;
  double most_x = 0, most_y = 0;
  for (const auto& [x, y] : points) {
    most_x = std::max(most_x, x);
    most_y = std::max(most_y, y);
  }
  const std::vector<double> x_ticks = Ticks(most_x), y_ticks = Ticks(most_y);
  const auto at_x = [&](double x) {
    return kLeft + x / x_ticks.back() * (kWidth - kLeft - kRight);
  };
  const auto at_y = [&](double y) {
    return kHeight - kBottom - y / y_ticks.back() * (kHeight - kTop - kBottom);
  };
  std::string svg = Begin(kWidth, kHeight);
  for (const double y : y_ticks) {
    absl::StrAppend(&svg, Line("grid", at_x(0), at_y(y), kWidth - kRight, at_y(y)),
                    Text(kLeft - 6, at_y(y) + 4, "end", absl::StrFormat("%g", y)));
  }
  for (const double x : x_ticks) {
    absl::StrAppend(&svg,
                    Text(at_x(x), kHeight - kBottom + 16, "middle", absl::StrFormat("%g", x)));
  }
  absl::StrAppend(&svg, Line("axis", at_x(0), at_y(0), kWidth - kRight, at_y(0)),
                  Line("axis", at_x(0), at_y(0), at_x(0), kTop),
                  Text(kWidth - kRight, kHeight - 6, "end", x_title),
                  Text(kLeft - 6, kTop - 10, "start", y_title));
  std::string path;
  for (const auto& [x, y] : points) {
    if (path.empty()) {
      path = absl::StrFormat("M%.1f %.1f", at_x(x), at_y(y));
    } else {
      absl::StrAppendFormat(&path, " H%.1f V%.1f", at_x(x), at_y(y));
    }
  }
  absl::StrAppend(&svg, "<path class=\"line\" d=\"", path, "\"/>\n</svg>\n");
  return svg;
}

std::string BarPlot(const std::vector<Bar>& bars) {
  constexpr double kWidth = 720, kRow = 20, kLeft = 260, kRight = 130;
  double most = 0;
  for (const Bar& bar : bars) most = std::max(most, bar.value);
  std::string svg = Begin(kWidth, kRow * static_cast<double>(bars.size()));
  for (size_t i = 0; i < bars.size(); ++i) {
    const double y = kRow * static_cast<double>(i);
    const double width = most > 0 ? bars[i].value / most * (kWidth - kLeft - kRight) : 0;
    absl::StrAppend(&svg, Text(kLeft - 6, y + 14, "end", bars[i].label));
    absl::StrAppendFormat(&svg,
                          "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                          "height=\"%.1f\"/>\n",
                          kLeft, y + 3, width, kRow - 6);
    absl::StrAppend(&svg, Text(kLeft + width + 6, y + 14, "start", bars[i].text));
  }
  return absl::StrCat(svg, "</svg>\n");
}

}  // namespace hone::cli

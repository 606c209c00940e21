#include "server/research/lab/svg_plot.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace hone::lab {
namespace {

constexpr double kWidth = 860, kHeight = 460;
constexpr double kLeft = 70, kRight = 200, kTop = 40, kBottom = 56;
constexpr int kYTicks = 8;

// Okabe and Ito's colours, with darker variants at the end.
constexpr absl::string_view kColours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00",
                                          "#56B4E9", "#000000", "#8C6D31", "#7B4173", "#637939"};
constexpr absl::string_view kDashes[] = {"", "7 3", "2 3", "9 3 2 3"};

std::string Escape(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

// Maps values to page coordinates.
class Scale {
 public:
  explicit Scale(const Plot& plot) : y_min_(plot.y_min) {
    x_min_ = INFINITY;
    x_max_ = 0;
    for (const PlotSeries& series : plot.series) {
      for (const double x : series.x) {
        x_min_ = std::min(x_min_, x);
        x_max_ = std::max(x_max_, x);
      }
    }
    if (x_max_ <= x_min_) x_max_ = 2 * x_min_;
  }

  double X(double x) const {
    const double share = std::log(x / x_min_) / std::log(x_max_ / x_min_);
    return kLeft + share * (kWidth - kLeft - kRight);
  }
  double Y(double y) const {
    const double share = (std::clamp(y, y_min_, 1.0) - y_min_) / (1 - y_min_);
    return kHeight - kBottom - share * (kHeight - kTop - kBottom);
  }

  // Returns 1, 2 and 5 times powers of ten; for a short range also other values.
  std::vector<double> XTicks() const {
    std::vector<double> ticks;
    for (int power = static_cast<int>(std::floor(std::log10(x_min_))); power < 9; ++power) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double tick = digit * std::pow(10, power);
        if (tick >= 0.999 * x_min_ && tick <= 1.001 * x_max_) ticks.push_back(tick);
      }
    }
    return ticks;
  }
  std::vector<double> YTicks() const {
    const double rough = (1 - y_min_) / kYTicks;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double digit : {5.0, 2.0, 1.0}) {
      if (digit * power >= rough) step = digit * power;
    }
    std::vector<double> ticks;
    for (double tick = std::ceil(y_min_ / step - 1e-9) * step; tick <= 1 + 1e-9; tick += step) {
      ticks.push_back(tick);
    }
    return ticks;
  }

 private:
  double x_min_, x_max_, y_min_;
};

void AddText(std::string& svg, double x, double y, absl::string_view attributes,
             absl::string_view text) {
  absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%.1f\"%s>%s</text>\n", x, y, attributes,
                        Escape(text));
}

void AddLine(std::string& svg, double x1, double y1, double x2, double y2,
             absl::string_view colour) {
  absl::StrAppendFormat(&svg,
                        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n",
                        x1, y1, x2, y2, colour);
}

void AddAxes(std::string& svg, const Plot& plot, const Scale& scale) {
  const double bottom = kHeight - kBottom, right = kWidth - kRight;
  for (const double tick : scale.XTicks()) {
    AddLine(svg, scale.X(tick), kTop, scale.X(tick), bottom, "#e4e4e4");
    AddText(svg, scale.X(tick), bottom + 17, " text-anchor=\"middle\"",
            absl::StrFormat("%g", tick));
  }
  for (const double tick : scale.YTicks()) {
    AddLine(svg, kLeft, scale.Y(tick), right, scale.Y(tick), "#e4e4e4");
    AddText(svg, kLeft - 8, scale.Y(tick) + 4, " text-anchor=\"end\"",
            absl::StrFormat("%g %%", std::round(1e4 * tick) / 100));
  }
  AddLine(svg, kLeft, bottom, right, bottom, "#444");
  AddLine(svg, kLeft, kTop, kLeft, bottom, "#444");
  AddText(svg, kLeft, 22, " font-size=\"15\" font-weight=\"bold\"", plot.title);
  AddText(svg, (kLeft + right) / 2, kHeight - 14, " text-anchor=\"middle\"", plot.x_label);
  const double middle = (kTop + bottom) / 2;
  AddText(svg, 18, middle,
          absl::StrFormat(" text-anchor=\"middle\" transform=\"rotate(-90 18 %.1f)\"", middle),
          plot.y_label);
}

void AddSeries(std::string& svg, const PlotSeries& series, const Scale& scale, size_t number) {
  const absl::string_view colour = kColours[number % std::size(kColours)];
  const absl::string_view dash = kDashes[number % std::size(kDashes)];
  std::string band, line;
  for (size_t i = 0; i < series.x.size(); ++i) {
    const double x = scale.X(series.x[i]);
    absl::StrAppendFormat(&band, "%.1f,%.1f ", x, scale.Y(series.y[i].high));
    absl::StrAppendFormat(&line, "%.1f,%.1f ", x, scale.Y(series.y[i].value));
  }
  for (size_t i = series.x.size(); i > 0; --i) {
    absl::StrAppendFormat(&band, "%.1f,%.1f ", scale.X(series.x[i - 1]),
                          scale.Y(series.y[i - 1].low));
  }
  absl::StrAppendFormat(&svg,
                        "<polygon points=\"%s\" fill=\"%s\" fill-opacity=\"0.12\"/>\n"
                        "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\" "
                        "stroke-dasharray=\"%s\"/>\n",
                        band, colour, line, colour, dash.empty() ? "none" : dash);
  const double x = kWidth - kRight + 14, y = kTop + 12 + 20 * static_cast<double>(number);
  absl::StrAppendFormat(&svg,
                        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                        "stroke-width=\"2\" stroke-dasharray=\"%s\"/>\n",
                        x, y - 4, x + 26, y - 4, colour, dash.empty() ? "none" : dash);
  AddText(svg, x + 33, y, "", series.label);
}

}  // namespace

std::string SvgPlot(const Plot& plot) {
  const Scale scale(plot);
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
      "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n",
      kWidth, kHeight, kWidth, kHeight, kWidth, kHeight);
  AddAxes(svg, plot, scale);
  for (size_t i = 0; i < plot.series.size(); ++i) AddSeries(svg, plot.series[i], scale, i);
  return absl::StrCat(svg, "</svg>\n");
}

}  // namespace hone::lab

#include "server/research/lab/svg_plot.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Checks that tags nest and are closed, that attributes are quoted, and that text has no bare "<"
// or "&". Returns the first error, or "" if there is none.
std::string NotWellFormed(absl::string_view xml) {
  std::vector<std::string> open;
  while (!xml.empty()) {
    const size_t begin = xml.find('<');
    const absl::string_view text = xml.substr(0, begin);
    for (size_t at = 0; (at = text.find('&', at)) != absl::string_view::npos; ++at) {
      const absl::string_view rest = text.substr(at);
      if (!absl::StartsWith(rest, "&amp;") && !absl::StartsWith(rest, "&lt;") &&
          !absl::StartsWith(rest, "&gt;")) {
        return "a bare &";
      }
    }
    if (begin == absl::string_view::npos) break;
    const size_t end = xml.find('>', begin);
    if (end == absl::string_view::npos) return "a tag without an end";
    const absl::string_view tag = xml.substr(begin + 1, end - begin - 1);
    xml.remove_prefix(end + 1);
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "quotes";
    if (absl::StartsWith(tag, "/")) {
      if (open.empty() || open.back() != tag.substr(1)) return std::string(tag);
      open.pop_back();
    } else if (!absl::EndsWith(tag, "/")) {
      open.emplace_back(tag.substr(0, tag.find(' ')));
    }
  }
  return open.empty() ? "" : "open: " + open.back();
}

Plot Small() {
  return {
      .title = "a < b & c",
      .x_label = "trials",
      .y_label = "share",
      .y_min = 0.5,
      .series = {{"first", {1, 2, 4, 256}, {{.6, .5, .7}, {.7, .6, .8}, {.9, .8, 1}, {1, 1, 1}}},
                 {"second", {1, 256}, {{0, 0, 2}, {.8, .7, .9}}}}};
}

TEST(SvgPlotTest, IsWellFormedAndLabelled) {
  const std::string svg = SvgPlot(Small());
  EXPECT_EQ(NotWellFormed(svg), "");
  for (const char* part : {"a &lt; b &amp; c", ">trials<", ">share<", ">first<", ">second<",
                           ">100<", ">100 %<", ">50 %<", "<polygon", "<polyline"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(SvgPlotTest, OnePointIsEnough) {
  Plot plot = Small();
  plot.series = {{"one", {3}, {{.9, .9, .9}}}};
  const std::string svg = SvgPlot(plot);
  EXPECT_EQ(NotWellFormed(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(SvgPlotTest, WellFormednessCheckDetectsErrors) {
  EXPECT_NE(NotWellFormed("<a><b></a></b>"), "");
  EXPECT_NE(NotWellFormed("<a>x & y</a>"), "");
  EXPECT_NE(NotWellFormed("<a b=\"1>x</a>"), "");
  EXPECT_NE(NotWellFormed("<a>"), "");
}

}  // namespace
}  // namespace hone::lab

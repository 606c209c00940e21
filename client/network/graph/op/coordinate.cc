#include "client/network/graph/op/coordinate.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

// Approximates a number by a fraction with a small divisor, from its continued fraction.
std::pair<int64_t, int64_t> Fraction(double value) {
  constexpr double kTolerance = 1e-7;
  constexpr int64_t kLargest = 1 << 20;
  int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
  double rest = value;
  for (int step = 0; step < 32; ++step) {
    const auto whole = static_cast<int64_t>(std::floor(rest));
    const int64_t p = whole * p1 + p0, q = whole * q1 + q0;
    if (p > kLargest || q > kLargest) break;
    p0 = std::exchange(p1, p);
    q0 = std::exchange(q1, q);
    const double near = static_cast<double>(p) / static_cast<double>(q);
    if (std::abs(near - value) <= kTolerance * value) break;
    rest = 1 / (rest - static_cast<double>(whole));
  }
  return {p1, q1};
}

// The same coordinate, reduced to lowest terms.
Coordinate Reduced(const Coordinate& c) {
  const int64_t divisor = std::gcd(std::gcd(c.factor, c.offset), c.divisor);
  return {c.factor / divisor, c.offset / divisor, c.divisor / divisor};
}

// A coordinate in lower terms that rounds down to the same index. The part of the offset below the
// common divisor of the factor and the divisor cannot change the rounded result.
Coordinate ReducedWhole(const Coordinate& c) {
  const int64_t divisor = std::gcd(c.factor, c.divisor);
  const int64_t offset = c.offset / divisor - (c.offset % divisor < 0 ? 1 : 0);
  return {c.factor / divisor, offset, c.divisor / divisor};
}

}  // namespace

absl::StatusOr<Resized> Resized::ByScale(const NodeView& node, int64_t from, double scale) {
  if (scale == 1) return Resized{from, from, 1, 1};
  if (!(scale > 1e-4 && scale < 1e4) || from > kMaxResized) {
    return node.InvalidError(absl::StrCat("a scale is ", scale, " for ", from, " elements"));
  }
  const auto [q, p] = Fraction(scale);
  // ONNX multiplies in f32, where 10 times 0.7 is 7 and not just below.
  const auto to =
      static_cast<int64_t>(std::floor(static_cast<float>(from) * static_cast<float>(scale)));
  // The scale is often the rounded ratio of the extents; then use the exact ratio.
  const double ratio = static_cast<double>(to) / static_cast<double>(from);
  if (from > 0 && std::abs(ratio - scale) <= 1e-6 * scale) return Resized{from, to, from, to};
  return Resized{from, to, p, q};
}

// The scale is d.q / d.p.
absl::StatusOr<Coordinate> Coordinate::Of(const NodeView& node, const Resized& d) {
  HONE_ASSIGN_OR_RETURN(const std::string mode,
                        node.String("coordinate_transformation_mode", "half_pixel"));
  if (mode == "asymmetric") return Reduced({d.p, 0, d.q});
  if (mode == "align_corners") {
    return d.to > 1 ? Reduced({d.from - 1, 0, d.to - 1}) : Coordinate{0, 0, 1};
  }
  if (mode == "pytorch_half_pixel" && d.to == 1) return Coordinate{0, 0, 1};
  if (mode == "half_pixel" || mode == "pytorch_half_pixel") {
    return Reduced({2 * d.p, d.p - d.q, 2 * d.q});
  }
  if (mode == "half_pixel_symmetric") {
    return Reduced({2 * d.p, d.p - d.q + d.from * d.q - d.to * d.p, 2 * d.q});
  }
  return node.UnimplementedError(
      absl::StrCat("coordinate_transformation_mode '", mode, "' is not supported"));
}

absl::StatusOr<Coordinate> Coordinate::Nearest(const NodeView& node) const {
  HONE_ASSIGN_OR_RETURN(const std::string mode, node.String("nearest_mode", "round_prefer_floor"));
  if (mode == "floor") return ReducedWhole(*this);
  if (mode == "ceil") return ReducedWhole({factor, offset + divisor - 1, divisor});
  const int64_t half_up = 2 * offset + divisor;  // over 2 * divisor
  if (mode == "round_prefer_ceil") return ReducedWhole({2 * factor, half_up, 2 * divisor});
  if (mode == "round_prefer_floor") return ReducedWhole({2 * factor, half_up - 1, 2 * divisor});
  return node.InvalidError(absl::StrCat("nearest_mode is '", mode, "'"));
}

int64_t Coordinate::At(int64_t output) const {
  const int64_t numerator = factor * output + offset;
  return numerator / divisor - (numerator % divisor < 0 ? 1 : 0);
}

std::string Coordinate::Numerator(const std::string& axis) const {
  return Affine({{factor, axis}}, offset);
}

std::string Coordinate::Whole(const std::string& axis) const {
  return divisor == 1 ? Numerator(axis) : absl::StrCat("(", Numerator(axis), ") / ", divisor);
}

}  // namespace hone::graph

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/op/axes.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

// The largest extent that can be resized. Coordinates are exact up to this extent.
inline constexpr int64_t kMaxResized = 1 << 24;

// One dimension of a resized tensor.
struct Resized {
  int64_t from, to;
  int64_t p, q;  // 1 / scale is the fraction p / q

  bool changes() const { return from != to || p != q; }
  // Scales the extent `from`. InvalidArgument: the scale or the extent is out of range.
  static absl::StatusOr<Resized> ByScale(const NodeView& node, int64_t from, double scale);
};

// The exact input coordinate of element o of the result: (factor·o + offset) / divisor.
struct Coordinate {
  int64_t factor = 1, offset = 0, divisor = 1;

  // From the attribute coordinate_transformation_mode. Unimplemented: the mode is not supported.
  static absl::StatusOr<Coordinate> Of(const NodeView& node, const Resized& dimension);
  // The coordinate whose floor is the nearest element according to the attribute nearest_mode.
  absl::StatusOr<Coordinate> Nearest(const NodeView& node) const;

  bool IsWhole() const { return factor % divisor == 0 && offset % divisor == 0; }
  // The coordinate of one element of the result, rounded down.
  int64_t At(int64_t output) const;
  // Index expressions: "2*i + 1" without the divisor, and "(2*i + 1) / 4", which is rounded down.
  std::string Numerator(const std::string& axis) const;
  std::string Whole(const std::string& axis) const;
};

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
  if (mode == "tf_half_pixel_for_nn") return Reduced({2 * d.p, d.p, 2 * d.q});
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

using ir::DType;

// Resizes all axes by the same ratio: the smallest or the largest of the ratios to the given sizes.
absl::Status KeepRatio(const NodeView& node, absl::string_view policy,
                       const std::vector<int64_t>& axes, const std::vector<ir::Scalar>& sizes,
                       std::vector<Resized>& all) {
  if (policy != "not_larger" && policy != "not_smaller") {
    return node.InvalidError(absl::StrCat("keep_aspect_ratio_policy is '", policy, "'"));
  }
  int64_t to = 0, from = 0;  // the ratio
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t extent = all[axes[i]].from, size = sizes[i].whole();
    if (size < 1 || extent < 1 || std::max(size, extent) > kMaxResized) {
      return node.InvalidError(absl::StrCat("resizes ", extent, " to ", size));
    }
    const bool is_smaller = size * from < to * extent;
    if (i > 0 && (policy == "not_larger") != is_smaller) continue;
    to = size;
    from = extent;
  }
  for (const int64_t axis : axes) {
    Resized& d = all[axis];
    d = {d.from, (2 * d.from * to + from) / (2 * from), from, to};  // rounded to nearest
    if (d.to < 1 || d.to > kMaxResized) {
      return node.InvalidError(absl::StrCat("resizes ", d.from, " to ", d.to));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Resized>> Dimensions(const NodeView& node) {
  const int64_t rank = node.Rank(0);
  std::vector<Resized> all;
  for (const int64_t extent : node.Shape(0)) all.push_back({extent, extent, 1, 1});
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
  HONE_ASSIGN_OR_RETURN(axes, node.IntList("axes", axes));
  HONE_ASSIGN_OR_RETURN(axes, AxesOf(node, axes, rank));
  const bool sizes = node.Has(3) && node.Type(3).elements() > 0;
  const int input = sizes ? 3 : 2;
  if (!node.Has(input)) return node.InvalidError("needs scales or sizes");
  HONE_ASSIGN_OR_RETURN(const std::vector<ir::Scalar> numbers, node.Elements(input));
  if (numbers.size() != axes.size()) {
    return node.InvalidError(
        absl::StrCat(numbers.size(), " scales or sizes for ", axes.size(), " dimensions"));
  }
  HONE_ASSIGN_OR_RETURN(const std::string policy,
                        node.String("keep_aspect_ratio_policy", "stretch"));
  if (sizes && policy != "stretch") {
    HONE_RETURN_IF_ERROR(KeepRatio(node, policy, axes, numbers, all));
    return all;
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    Resized& d = all[axes[i]];
    if (!sizes) {
      HONE_ASSIGN_OR_RETURN(d, Resized::ByScale(node, d.from, numbers[i].real()));
    } else {
      const int64_t to = numbers[i].whole();
      if (to < 1 || d.from < 1 || std::max(to, d.from) > kMaxResized) {
        return node.InvalidError(absl::StrCat("resizes ", d.from, " to ", to));
      }
      d = {d.from, to, d.from, to};
    }
  }
  return all;
}

// One dimension of the tensor that a stage resizes.
struct Dimension {
  int64_t index;
  Resized resized;
  Coordinate coordinate;
  std::string axis;
};

// The element at the coordinate plus `plus`, with the index clamped to the dimension. `at` returns
// the element of the tensor at an index.
template <typename At>
std::string Clamped(const Dimension& d, int64_t plus, const At& at) {
  const int64_t extent = d.resized.from;
  Coordinate c = d.coordinate;
  c.offset += plus * c.divisor;
  const std::string index = c.Whole(d.axis);
  std::string value = at(index);
  if (c.At(d.resized.to - 1) >= extent) {
    value = Guarded(value, {absl::StrCat(index, " < ", extent)}, at(absl::StrCat(extent - 1)));
  }
  if (c.At(0) < 0) value = Guarded(value, {absl::StrCat("0 <= ", index)}, at("0"));
  return value;
}

// A tap of an interpolation: its distance from the coordinate rounded down, and its weight, a
// formula of the coordinate's fractional part.
struct Tap {
  int64_t plus;
  std::string weight;
};

absl::StatusOr<std::vector<Tap>> Taps(const NodeView& node, const std::string& mode,
                                      const std::string& t, DType dtype) {
  if (mode == "linear") {
    return std::vector<Tap>{{0, absl::StrCat("(1.0 - ", t, ")")}, {1, t}};
  }
  HONE_ASSIGN_OR_RETURN(const double a, node.Float("cubic_coeff_a", -0.75));
  const auto number = [&](double value) { return Literal(dtype, value); };
  // Keys' cubic kernel, for |x| <= 1 and for 1 < |x| < 2.
  const auto inner = [&](const std::string& x) {
    return absl::StrCat("((", number(a + 2), " * ", x, " - ", number(a + 3), ") * ", x, " * ", x,
                        " + 1.0)");
  };
  const auto outer = [&](const std::string& x) {
    return absl::StrCat("(((", number(a), " * ", x, " - ", number(5 * a), ") * ", x, " + ",
                        number(8 * a), ") * ", x, " - ", number(4 * a), ")");
  };
  return std::vector<Tap>{{-1, outer(absl::StrCat("(", t, " + 1.0)"))},
                          {0, inner(t)},
                          {1, inner(absl::StrCat("(1.0 - ", t, ")"))},
                          {2, outer(absl::StrCat("(2.0 - ", t, ")"))}};
}

// Interpolates the elements around the coordinate. `at` is as for Clamped().
template <typename At>
absl::StatusOr<std::string> Interpolated(const NodeView& node, const std::string& mode,
                                         const Dimension& d, DType dtype, const At& at) {
  const Coordinate& c = d.coordinate;
  if (c.IsWhole()) return Clamped(d, 0, at);
  const std::string t =
      absl::StrCat(Convert(DType::kI64, dtype,
                           absl::StrCat("index((", c.Numerator(d.axis), ") % ", c.divisor, ")")),
                   " * ", Literal(dtype, 1 / static_cast<double>(c.divisor)));
  HONE_ASSIGN_OR_RETURN(const auto taps, Taps(node, mode, absl::StrCat("(", t, ")"), dtype));
  std::string value;
  for (const Tap& tap : taps) {
    absl::StrAppend(&value, value.empty() ? "" : " + ", Clamped(d, tap.plus, at), " * ",
                    tap.weight);
  }
  return value;
}

absl::StatusOr<Types> InferResize(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "nearest"));
  HONE_ASSIGN_OR_RETURN(const int64_t antialias, node.Int("antialias", 0));
  HONE_ASSIGN_OR_RETURN(const int64_t exclude, node.Int("exclude_outside", 0));
  if (antialias != 0 || exclude != 0) {
    return node.UnimplementedError("antialias and exclude_outside are not supported");
  }
  if (mode != "nearest" && mode != "linear" && mode != "cubic") {
    return node.InvalidError(absl::StrCat("mode is '", mode, "'"));
  }
  if (mode != "nearest") HONE_RETURN_IF_ERROR(NeedFloat(node, 0));
  HONE_ASSIGN_OR_RETURN(const std::vector<Resized> all, Dimensions(node));
  std::vector<int64_t> shape;
  for (const Resized& d : all) {
    HONE_ASSIGN_OR_RETURN(const Coordinate c, Coordinate::Of(node, d));
    HONE_RETURN_IF_ERROR(c.Nearest(node).status());
    shape.push_back(d.to);
  }
  return Types{{node.Type(0).dtype, std::move(shape)}};
}

// Writes one stage that reads the nearest elements.
absl::Status DefineNearest(const NodeView& node, StageWriter& writer,
                           const std::vector<Resized>& all) {
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  // Each dimension whose index may leave the tensor is clamped by guards around the read.
  std::vector<Dimension> clamped;
  for (size_t d = 0; d < all.size(); ++d) {
    if (!all[d].changes()) continue;
    HONE_ASSIGN_OR_RETURN(const Coordinate c, Coordinate::Of(node, all[d]));
    HONE_ASSIGN_OR_RETURN(const Coordinate nearest, c.Nearest(node));
    clamped.push_back({static_cast<int64_t>(d), all[d], nearest, axes[d]});
  }
  const auto read = [&](const auto& self, size_t next,
                        std::vector<std::string> indices) -> std::string {
    if (next == clamped.size()) return writer.In(0, indices);
    return Clamped(clamped[next], 0, [&](const std::string& index) {
      indices[clamped[next].index] = index;
      return self(self, next + 1, indices);
    });
  };
  writer.Output(0, axes, read(read, 0, axes));
  return absl::OkStatus();
}

// Interpolation is separable, so each dimension has its own stage.
absl::Status DefineInterpolated(const NodeView& node, StageWriter& writer,
                                const std::vector<Resized>& all, const std::string& mode) {
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  std::vector<int64_t> shape = node.Shape(0);
  const DType type = node.Type(0).dtype, dtype = ir::AccumulatorOf(type);
  std::string stage;  // the result so far; the input at first
  for (size_t d = 0; d < all.size(); ++d) {
    if (!all[d].changes()) continue;
    HONE_ASSIGN_OR_RETURN(const Coordinate c, Coordinate::Of(node, all[d]));
    const auto at = [&](const std::string& index) {
      std::vector<std::string> element = axes;
      element[d] = index;
      return stage.empty() ? Convert(type, dtype, writer.In(0, element)) : Element(stage, element);
    };
    shape[d] = all[d].to;
    HONE_ASSIGN_OR_RETURN(
        const std::string value,
        Interpolated(node, mode, {static_cast<int64_t>(d), all[d], c, axes[d]}, dtype, at));
    stage = writer.Stage("resized", axes, shape, value);
  }
  writer.Output(0, axes,
                stage.empty() ? writer.In(0, axes) : Convert(dtype, type, Element(stage, axes)));
  return absl::OkStatus();
}

absl::Status DefineResize(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "nearest"));
  HONE_ASSIGN_OR_RETURN(const std::vector<Resized> all, Dimensions(node));
  return mode == "nearest" ? DefineNearest(node, writer, all)
                           : DefineInterpolated(node, writer, all, mode);
}

}  // namespace

absl::Span<const OperatorDef> ResizeOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Resize", 1, 4, InferResize, DefineResize,
       "constant scales or sizes, and a constant region of interest"}};
  return kOperators;
}

}  // namespace hone::graph

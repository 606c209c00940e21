#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/onnx/compose/composition.h"
#include "common/base/status_macros.h"

// The forms of Resize whose weights differ from element to element: with antialias, exclude_outside
// or a region of interest. Along each axis, a product with a constant matrix interpolates, and a
// Gather takes the nearest elements.
namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::ValueId;

constexpr int64_t kMostWeights = int64_t{1} << 24;  // of a matrix

bool HasOwnWeights(const graph::NodeView& node) {
  return node.Int("antialias", 0).value_or(0) != 0 ||
         node.Int("exclude_outside", 0).value_or(0) != 0 ||
         node.String("coordinate_transformation_mode", "").value_or("") == "tf_crop_and_resize";
}

// How to resize one axis.
struct ResizedAxis {
  int64_t axis, from, to;
  double scale;
  double begin = 0, end = 1;  // the region of interest
};

class WeightedResize {
 public:
  explicit WeightedResize(Composer& composer) : composer_(composer) {}

  absl::StatusOr<std::vector<ValueId>> Compose() {
    HONE_RETURN_IF_ERROR(ReadAttributes());
    HONE_RETURN_IF_ERROR(ReadAxes());
    ValueId value = composer_.input(0);
    if (mode_ != "nearest" && !ir::IsFloat(composer_.TypeOf(value).dtype)) {
      return composer_.view().InvalidError(
          absl::StrCat("cannot interpolate ", composer_.TypeOf(value).ToText()));
    }
    std::vector<ValueId> inside;
    for (const ResizedAxis& axis : axes_) {
      if (axis.from == axis.to && axis.scale == 1 && transformation_ != "tf_crop_and_resize") {
        continue;
      }
      HONE_ASSIGN_OR_RETURN(value,
                            mode_ == "nearest" ? Nearest(value, axis) : Interpolated(value, axis));
      if (transformation_ == "tf_crop_and_resize") inside.push_back(Inside(axis));
    }
    for (const ValueId mask : inside) {
      if (mask == kNoValue) continue;
      HONE_ASSIGN_OR_RETURN(
          value, composer_.Apply(
                     "Where", {mask, value, composer_.Scalar("outside", value, extrapolation_)}));
    }
    return std::vector<ValueId>{value};
  }

 private:
  absl::Status ReadAttributes() {
    const graph::NodeView node = composer_.view();
    if (!node.Has(0)) return node.InvalidError("input 0 is missing");
    HONE_ASSIGN_OR_RETURN(mode_, node.String("mode", "nearest"));
    HONE_ASSIGN_OR_RETURN(transformation_,
                          node.String("coordinate_transformation_mode", "half_pixel"));
    HONE_ASSIGN_OR_RETURN(nearest_, node.String("nearest_mode", "round_prefer_floor"));
    HONE_ASSIGN_OR_RETURN(policy_, node.String("keep_aspect_ratio_policy", "stretch"));
    HONE_ASSIGN_OR_RETURN(const int64_t antialias, node.Int("antialias", 0));
    HONE_ASSIGN_OR_RETURN(const int64_t exclude, node.Int("exclude_outside", 0));
    HONE_ASSIGN_OR_RETURN(cubic_, node.Float("cubic_coeff_a", -0.75));
    HONE_ASSIGN_OR_RETURN(extrapolation_, node.Float("extrapolation_value", 0));
    antialias_ = antialias != 0;
    exclude_ = exclude != 0;
    const auto is_one_of = [](const std::string& value, std::vector<std::string> known) {
      return std::find(known.begin(), known.end(), value) != known.end();
    };
    const std::pair<std::string, bool> checks[] = {
        {mode_, is_one_of(mode_, {"nearest", "linear", "cubic"})},
        {nearest_,
         is_one_of(nearest_, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})},
        {policy_, is_one_of(policy_, {"stretch", "not_larger", "not_smaller"})},
        {transformation_,
         is_one_of(transformation_,
                   {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"})}};
    for (const auto& [value, is_known] : checks) {
      if (!is_known) return node.InvalidError(absl::StrCat("does not know '", value, "'"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadAxes() {
    const graph::NodeView node = composer_.view();
    const int64_t rank = node.Rank(0);
    std::vector<int64_t> axes;
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
    HONE_ASSIGN_OR_RETURN(axes, node.IntList("axes", axes));
    const bool sizes = node.Has(3) && node.Type(3).elements() > 0;
    const int input = sizes ? 3 : 2;
    if (!node.Has(input)) return node.InvalidError("needs scales or sizes");
    HONE_ASSIGN_OR_RETURN(const std::vector<ir::Scalar> numbers, node.Elements(input));
    std::vector<ir::Scalar> region;
    if (transformation_ == "tf_crop_and_resize") {
      if (!node.Has(1)) return node.InvalidError("needs a region of interest");
      HONE_ASSIGN_OR_RETURN(region, node.Elements(1));
    }
    if (numbers.size() != axes.size() || (!region.empty() && region.size() != 2 * axes.size())) {
      return node.InvalidError(absl::StrCat(numbers.size(), " scales or sizes and ", region.size(),
                                            " bounds of a region for ", axes.size(), " axes"));
    }
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
      if (axis < 0 || axis >= rank) return node.InvalidError(absl::StrCat("axis ", axes[i]));
      ResizedAxis& a = axes_.emplace_back(ResizedAxis{.axis = axis, .from = node.Shape(0)[axis]});
      const double from = static_cast<double>(a.from);
      a.scale = sizes ? numbers[i].real() / from : numbers[i].real();
      if (!region.empty()) {
        a.begin = region[i].real();
        a.end = region[axes.size() + i].real();
      }
    }
    if (sizes && policy_ != "stretch") {
      const auto by_scale = [](const ResizedAxis& a, const ResizedAxis& b) {
        return a.scale < b.scale;
      };
      const double scale = policy_ == "not_larger"
                               ? std::min_element(axes_.begin(), axes_.end(), by_scale)->scale
                               : std::max_element(axes_.begin(), axes_.end(), by_scale)->scale;
      for (ResizedAxis& a : axes_) a.scale = scale;
    }
    for (size_t i = 0; i < axes_.size(); ++i) {
      ResizedAxis& a = axes_[i];
      const double to = static_cast<double>(a.from) * a.scale;
      if (a.from < 1 || !(a.scale > 1e-4 && a.scale < 1e4) || !(to < 1 << 24)) {
        return node.InvalidError(
            absl::StrCat("a scale is ", a.scale, " for ", a.from, " elements"));
      }
      // ONNX multiplies in f32, where 10 times 0.7 is 7 and not just below.
      a.to = sizes && policy_ == "stretch" ? numbers[i].whole()
             : sizes                       ? static_cast<int64_t>(std::floor(to + 0.5))
                                           : static_cast<int64_t>(
                           std::floor(static_cast<float>(a.from) * static_cast<float>(a.scale)));
      if (a.to < 1) return node.InvalidError(absl::StrCat("resizes ", a.from, " to ", a.to));
    }
    return absl::OkStatus();
  }

  // The coordinate in the input of an element of the result.
  double CoordinateOf(const ResizedAxis& a, int64_t output) const {
    const double o = static_cast<double>(output), from = static_cast<double>(a.from);
    const double width = from * a.scale;  // of the result, not rounded
    if (transformation_ == "asymmetric") return o / a.scale;
    if (transformation_ == "align_corners") {
      return width == 1 ? 0 : o * (from - 1) / (width - 1);
    }
    if (transformation_ == "tf_crop_and_resize") {
      if (a.to == 1) return (a.end + a.begin) * (from - 1) / 2;
      return a.begin * (from - 1) + o * (a.end - a.begin) * (from - 1) / (width - 1);
    }
    if (transformation_ == "tf_half_pixel_for_nn") return (o + 0.5) / a.scale;
    const double half_pixel = (o + 0.5) / a.scale - 0.5;
    if (transformation_ == "pytorch_half_pixel" && a.to == 1) return -0.5;
    if (transformation_ != "half_pixel_symmetric") return half_pixel;
    return from / 2 * (1 - static_cast<double>(a.to) / width) + half_pixel;
  }

  // The weight of an element at this distance from the coordinate.
  double Weight(double distance) const {
    const double x = std::abs(distance);
    if (mode_ == "linear") return std::max(0.0, 1 - x);
    if (x <= 1) return ((cubic_ + 2) * x - (cubic_ + 3)) * x * x + 1;
    if (x < 2) return ((cubic_ * x - 5 * cubic_) * x + 8 * cubic_) * x - 4 * cubic_;
    return 0;
  }

  // Adds the weights of the elements of the input for one element of the result.
  void AddWeights(const ResizedAxis& a, double coordinate, std::vector<double>& row) const {
    const double shrink = antialias_ ? std::min(a.scale, 1.0) : 1;
    const double reach = (mode_ == "linear" ? 1 : 2) / shrink;
    // The coordinate of an element belongs to the interval before it.
    const double base = std::ceil(coordinate) - 1, ratio = coordinate - base;
    const double first = std::floor(-reach) + 1;
    std::vector<std::pair<int64_t, double>> taps;
    double total = 0;
    for (double i = first; i <= 1 - first; ++i) {
      const double weight = Weight(shrink * (i - ratio));
      const auto at = static_cast<int64_t>(std::clamp(base + i, -1.0, static_cast<double>(a.from)));
      if (exclude_ && (at < 0 || at >= a.from)) continue;
      taps.emplace_back(std::clamp<int64_t>(at, 0, a.from - 1), weight);
      total += weight;
    }
    if ((!antialias_ && !exclude_) || total == 0) total = 1;
    for (const auto& [at, weight] : taps) row[at] += weight / total;
  }

  absl::StatusOr<ValueId> Interpolated(ValueId value, const ResizedAxis& a) {
    if (a.to > kMostWeights / a.from) {
      return composer_.view().UnimplementedError(
          absl::StrCat("resizing ", a.from, " to ", a.to, " elements is not supported"));
    }
    const ir::DType dtype = composer_.TypeOf(value).dtype;
    HONE_RETURN_IF_ERROR(composer_.Reserve({dtype, {a.to, a.from}}));
    const int64_t rank = std::ssize(composer_.TypeOf(value).shape);
    const bool is_column = a.axis == rank - 2;  // no transposition is needed
    ir::Scalars weights(a.to * a.from);
    for (int64_t o = 0; o < a.to; ++o) {
      std::vector<double> row(a.from);
      AddWeights(a, CoordinateOf(a, o), row);
      for (int64_t i = 0; i < a.from; ++i) {
        weights[is_column ? o * a.from + i : i * a.to + o] = ir::CastTo(dtype, row[i]);
      }
    }
    const std::vector<int64_t> shape =
        is_column ? std::vector<int64_t>{a.to, a.from} : std::vector<int64_t>{a.from, a.to};
    const ValueId matrix = composer_.Constant("weights", {dtype, shape}, weights);
    if (is_column) return composer_.Apply("MatMul", {matrix, value});
    if (a.axis == rank - 1) return composer_.Apply("MatMul", {value, matrix});
    std::vector<int64_t> order;
    for (int64_t d = 0; d < rank; ++d) order.push_back(d);
    std::swap(order[a.axis], order[rank - 1]);
    HONE_ASSIGN_OR_RETURN(value, composer_.Transpose(value, order));
    HONE_ASSIGN_OR_RETURN(value, composer_.Apply("MatMul", {value, matrix}));
    return composer_.Transpose(value, order);
  }

  absl::StatusOr<ValueId> Nearest(ValueId value, const ResizedAxis& a) {
    HONE_RETURN_IF_ERROR(composer_.Reserve({ir::DType::kI64, {a.to}}));
    std::vector<int64_t> places;
    for (int64_t o = 0; o < a.to; ++o) {
      const double x = CoordinateOf(a, o), below = std::floor(x), rest = x - below;
      const bool up = nearest_ == "ceil"                ? rest > 0
                      : nearest_ == "round_prefer_ceil" ? rest >= 0.5
                                                        : nearest_ != "floor" && rest > 0.5;
      const double last = static_cast<double>(a.from - 1);
      places.push_back(static_cast<int64_t>(std::clamp(below + (up ? 1 : 0), 0.0, last)));
    }
    return composer_.Apply("Gather", {value, composer_.Ints("nearest", places)},
                           {{"axis", a.axis}});
  }

  // Which elements of the result lie inside of the input along an axis, in a shape that broadcasts;
  // kNoValue: all of them.
  ValueId Inside(const ResizedAxis& a) {
    ir::Scalars inside;
    bool all = true;
    for (int64_t o = 0; o < a.to; ++o) {
      const double x = CoordinateOf(a, o);
      const bool is_inside = 0 <= x && x <= static_cast<double>(a.from - 1);
      all &= is_inside;
      inside.push_back(ir::CastTo(ir::DType::kBool, is_inside ? 1.0 : 0.0));
    }
    if (all) return kNoValue;
    std::vector<int64_t> shape(composer_.view().Rank(0), 1);
    shape[a.axis] = a.to;
    return composer_.Constant("inside", {ir::DType::kBool, shape}, inside);
  }

  Composer& composer_;
  std::string mode_, transformation_, nearest_, policy_;
  bool antialias_ = false, exclude_ = false;
  double cubic_ = 0, extrapolation_ = 0;
  std::vector<ResizedAxis> axes_;
};

absl::StatusOr<std::vector<ValueId>> ComposeResize(Rewrite& composer) {
  return WeightedResize(composer).Compose();
}

}  // namespace

absl::Span<const Composition> ResizeCompositions() {
  static constexpr Composition kCompositions[] = {{"Resize", ComposeResize, "", HasOwnWeights}};
  return kCompositions;
}

}  // namespace hone::onnx

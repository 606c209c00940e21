#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/network/onnx/compose/composition.h"
#include "common/base/status_macros.h"

// Operators that read or write an image at computed places.
namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::ValueId;
using Outputs = std::vector<ValueId>;
using Shape = std::vector<int64_t>;

// Adds nodes until one fails, and keeps the error.
class Formula {
 public:
  explicit Formula(Composer& composer) : composer_(composer) {}

  ValueId operator()(absl::string_view op, std::vector<ValueId> inputs,
                     Composer::Attributes attributes = {}) {
    return Keep([&] { return composer_.Apply(op, std::move(inputs), std::move(attributes)); });
  }
  ValueId Number(double value) {
    return composer_.Constant("number", {ir::DType::kF32, {}}, {value});
  }
  ValueId Plus(ValueId x, double value) {
    return value == 0 ? x : (*this)("Add", {x, Number(value)});
  }
  ValueId Times(ValueId x, double value) {
    return value == 1 ? x : (*this)("Mul", {x, Number(value)});
  }
  ValueId Clipped(ValueId x, double least, double most) {
    return (*this)("Clip", {x, Number(least), Number(most)});
  }
  ValueId Cast(ValueId x, ir::DType dtype) {
    return Keep([&] { return composer_.Cast(x, dtype); });
  }
  ValueId Reshape(ValueId x, const Shape& shape) {
    return Keep([&] { return composer_.Reshape(x, shape); });
  }
  ValueId Transpose(ValueId x, const Shape& order) {
    return Keep([&] { return composer_.Transpose(x, order); });
  }
  ValueId At(ValueId x, int64_t axis, int64_t index) {
    return Keep([&] { return composer_.At(x, axis, index); });
  }
  const absl::Status& status() const { return status_; }

 private:
  template <typename Add>
  ValueId Keep(const Add& add) {
    if (!status_.ok()) return kNoValue;
    const absl::StatusOr<ValueId> added = add();
    if (added.ok()) return *added;
    status_ = added.status();
    return kNoValue;
  }

  Composer& composer_;
  absl::Status status_;
};

enum class Padding { kZeros, kBorder, kReflection };

// How to read an image at places between its elements.
struct Sampling {
  std::string mode;  // nearest, linear or cubic
  Padding padding = Padding::kZeros;
  bool align_corners = false;
};

// A tap of an interpolation in one dimension.
struct SampleTap {
  ValueId index;   // in the image, as f32
  ValueId inside;  // whether it is one of the image; kNoValue: always
  ValueId weight;  // kNoValue: 1
};

class Sampler {
 public:
  Sampler(Composer& composer, Formula& f, Sampling sampling)
      : composer_(composer), f_(f), sampling_(std::move(sampling)) {}

  // Reads the image [n, c, …] at coordinates, one tensor of f32 per dimension after the channels,
  // in the samples `sample` (i64). All of these broadcast to one shape. The result is [c, shape].
  ValueId Read(ValueId image, ValueId sample, const std::vector<ValueId>& coordinates) {
    const Shape shape = composer_.TypeOf(image).shape;
    const Shape extents(shape.begin() + 2, shape.end());
    int64_t size = 1;
    for (const int64_t extent : extents) size *= extent;
    Shape order = {1, 0};
    for (size_t d = 2; d < shape.size(); ++d) order.push_back(static_cast<int64_t>(d));
    flat_ = f_.Reshape(f_.Transpose(image, order), {shape[1], shape[0] * size});
    base_ = shape[0] == 1
                ? kNoValue
                : f_("Mul", {sample, composer_.Constant("size", {ir::DType::kI64, {}}, {size})});
    zero_ = composer_.Scalar("zero", image, 0);
    taps_.clear();
    for (size_t d = 0; d < extents.size(); ++d) taps_.push_back(Taps(coordinates[d], extents[d]));
    extents_ = extents;
    sum_ = kNoValue;
    AddTaps(0, base_, kNoValue, kNoValue);
    return sum_;
  }

 private:
  // Reflects at both ends of an image.
  ValueId Reflected(ValueId x, int64_t extent) {
    const double least = sampling_.align_corners ? 0 : -0.5;
    const double range = static_cast<double>(sampling_.align_corners ? extent - 1 : extent);
    if (range == 0) return f_.Times(x, 0);
    const ValueId distance = f_("Abs", {f_.Plus(x, -least)});
    const ValueId turns = f_("Floor", {f_.Times(distance, 1 / range)});
    const ValueId rest = f_("Sub", {distance, f_.Times(turns, range)});
    const ValueId half = f_("Floor", {f_.Times(turns, 0.5)});
    const ValueId is_odd = f_("Greater", {f_("Sub", {turns, f_.Times(half, 2)}), f_.Number(0.5)});
    const ValueId back = f_("Sub", {f_.Number(least + range), rest});
    return f_("Where", {is_odd, back, f_.Plus(rest, least)});
  }

  SampleTap TapAt(ValueId index, int64_t extent, ValueId weight) {
    const double last = static_cast<double>(extent - 1);
    SampleTap tap{.index = f_.Clipped(index, 0, last), .inside = kNoValue, .weight = weight};
    if (sampling_.padding == Padding::kZeros) tap.inside = f_("Equal", {index, tap.index});
    return tap;
  }

  std::vector<SampleTap> Taps(ValueId x, int64_t extent) {
    const bool is_cubic = sampling_.mode == "cubic";
    if (!is_cubic && sampling_.padding == Padding::kBorder) {
      x = f_.Clipped(x, 0, static_cast<double>(extent - 1));
    }
    if (!is_cubic && sampling_.padding == Padding::kReflection) x = Reflected(x, extent);
    if (sampling_.mode == "nearest") return {TapAt(f_("Round", {x}), extent, kNoValue)};
    const ValueId whole = f_("Floor", {x}), t = f_("Sub", {x, whole});
    const ValueId rest = f_("Sub", {f_.Number(1), t});
    if (!is_cubic) {
      return {TapAt(whole, extent, rest), TapAt(f_.Plus(whole, 1), extent, t)};
    }
    std::vector<SampleTap> taps;
    for (int64_t k = -1; k <= 2; ++k) {
      // The distance from the coordinate.
      const ValueId distance =
          k <= 0 ? f_.Plus(t, static_cast<double>(-k)) : f_.Plus(rest, static_cast<double>(k - 1));
      ValueId index = f_.Plus(whole, static_cast<double>(k));
      if (sampling_.padding == Padding::kReflection) index = Reflected(index, extent);
      taps.push_back(TapAt(index, extent, Cubic(distance, k == 0 || k == 1)));
    }
    return taps;
  }

  // Keys' cubic kernel, for distances up to 1 and beyond.
  ValueId Cubic(ValueId x, bool is_inner) {
    constexpr double kA = -0.75;
    const auto times_x_plus = [&](ValueId value, double number) {
      return f_.Plus(f_("Mul", {value, x}), number);
    };
    if (is_inner) return times_x_plus(times_x_plus(f_.Plus(f_.Times(x, kA + 2), -kA - 3), 0), 1);
    return times_x_plus(times_x_plus(f_.Plus(f_.Times(x, kA), -5 * kA), 8 * kA), -4 * kA);
  }

  ValueId Both(absl::string_view op, ValueId a, ValueId b) {
    return a == kNoValue ? b : b == kNoValue ? a : f_(op, {a, b});
  }

  // Adds the elements of all taps of the dimensions from d on.
  void AddTaps(size_t d, ValueId place, ValueId inside, ValueId weight) {
    if (d < taps_.size()) {
      int64_t stride = 1;
      for (size_t later = d + 1; later < extents_.size(); ++later) stride *= extents_[later];
      for (const SampleTap& tap : taps_[d]) {
        const ValueId index = f_.Cast(tap.index, ir::DType::kI64);
        const ValueId step =
            stride == 1
                ? index
                : f_("Mul", {index, composer_.Constant("stride", {ir::DType::kI64, {}}, {stride})});
        AddTaps(d + 1, Both("Add", place, step), Both("And", inside, tap.inside),
                Both("Mul", weight, tap.weight));
      }
      return;
    }
    ValueId value = f_("Gather", {flat_, place}, {{"axis", int64_t{1}}});
    if (inside != kNoValue) value = f_("Where", {inside, value, zero_});
    if (weight != kNoValue) value = f_("Mul", {value, f_("CastLike", {weight, zero_})});
    sum_ = Both("Add", sum_, value);
  }

  Composer& composer_;
  Formula& f_;
  const Sampling sampling_;
  ValueId flat_ = kNoValue, base_ = kNoValue, zero_ = kNoValue, sum_ = kNoValue;
  Shape extents_;
  std::vector<std::vector<SampleTap>> taps_;  // by dimension
};

// The numbers from 0 to n - 1 as a column: [n, 1, …, 1].
ValueId Column(Composer& composer, int64_t n, size_t rank) {
  ir::Scalars numbers;
  for (int64_t i = 0; i < n; ++i) numbers.push_back(i);
  Shape shape(rank, 1);
  shape[0] = n;
  return composer.Constant("samples", {ir::DType::kI64, shape}, numbers);
}

// [c, n, …] → [n, c, …].
ValueId SwapFirst(Formula& f, ValueId value, size_t rank) {
  Shape order = {1, 0};
  for (size_t d = 2; d < rank; ++d) order.push_back(static_cast<int64_t>(d));
  return f.Transpose(value, order);
}

absl::StatusOr<Outputs> GridSample(Rewrite& composer) {
  const graph::NodeView node = composer.view();
  if (!node.Has(0) || !node.Has(1)) return node.InvalidError("needs an image and a grid");
  const Shape image = node.Shape(0), grid = node.Shape(1);
  const size_t dimensions = image.size() - 2;
  const bool fits = image.size() >= 3 && grid.size() == image.size() && grid[0] == image[0] &&
                    grid.back() == static_cast<int64_t>(dimensions) &&
                    ir::IsFloat(node.Type(0).dtype) && ir::IsFloat(node.Type(1).dtype);
  if (!fits || node.Type(0).elements() == 0 || node.Type(1).elements() == 0) {
    return node.InvalidError(absl::StrCat("a grid of type ", node.Type(1).ToText(),
                                          " does not fit an image of type ",
                                          node.Type(0).ToText()));
  }
  Sampling sampling;
  HONE_ASSIGN_OR_RETURN(sampling.mode, node.String("mode", "linear"));
  if (sampling.mode == "bilinear") sampling.mode = "linear";
  if (sampling.mode == "bicubic") sampling.mode = "cubic";
  HONE_ASSIGN_OR_RETURN(const std::string padding, node.String("padding_mode", "zeros"));
  HONE_ASSIGN_OR_RETURN(const int64_t align, node.Int("align_corners", 0));
  sampling.align_corners = align != 0;
  const bool is_known =
      (padding == "zeros" || padding == "border" || padding == "reflection") &&
      (sampling.mode == "nearest" || sampling.mode == "linear" || sampling.mode == "cubic");
  if (!is_known) {
    return node.InvalidError(
        absl::StrCat("mode is '", sampling.mode, "' and padding_mode is '", padding, "'"));
  }
  if (dimensions > (sampling.mode == "cubic" ? 2 : 3)) {
    return node.UnimplementedError(absl::StrCat("mode '", sampling.mode, "' of images with ",
                                                dimensions, " dimensions is not supported"));
  }
  sampling.padding = padding == "zeros"    ? Padding::kZeros
                     : padding == "border" ? Padding::kBorder
                                           : Padding::kReflection;
  Formula f(composer);
  const ValueId places = f.Cast(composer.input(1), ir::DType::kF32);
  std::vector<ValueId> coordinates;
  for (size_t d = 0; d < dimensions; ++d) {
    // The grid has the last dimension first, from -1 to 1.
    const double extent = static_cast<double>(image[d + 2]);
    const ValueId at = f.At(places, static_cast<int64_t>(dimensions) + 1,
                            static_cast<int64_t>(dimensions - 1 - d));
    coordinates.push_back(
        f.Plus(f.Times(at, (align != 0 ? extent - 1 : extent) / 2), (extent - 1) / 2));
  }
  HONE_RETURN_IF_ERROR(f.status());
  HONE_RETURN_IF_ERROR(composer.Reserve({ir::DType::kI64, {image[0]}}));
  Sampler sampler(composer, f, sampling);
  const ValueId read =
      sampler.Read(composer.input(0), Column(composer, image[0], dimensions + 1), coordinates);
  const ValueId result = SwapFirst(f, read, image.size());
  HONE_RETURN_IF_ERROR(f.status());
  return Outputs{result};
}

absl::StatusOr<Outputs> RoiAlign(Rewrite& composer) {
  const graph::NodeView node = composer.view();
  for (const int input : {0, 1, 2}) {
    if (!node.Has(input)) return node.InvalidError(absl::StrCat("input ", input, " is missing"));
  }
  const Shape image = node.Shape(0), rois = node.Shape(1);
  if (image.size() != 4 || rois.size() != 2 || rois[1] != 4 || node.Shape(2) != Shape{rois[0]} ||
      node.Type(0).elements() == 0 || rois[0] == 0 || !ir::IsFloat(node.Type(0).dtype)) {
    return node.InvalidError(absl::StrCat("regions of type ", node.Type(1).ToText(),
                                          " do not fit an image of type ", node.Type(0).ToText()));
  }
  HONE_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "avg"));
  HONE_ASSIGN_OR_RETURN(const std::string transformation,
                        node.String("coordinate_transformation_mode",
                                    composer.opset() < 16 ? "output_half_pixel" : "half_pixel"));
  HONE_ASSIGN_OR_RETURN(const int64_t height, node.Int("output_height", 1));
  HONE_ASSIGN_OR_RETURN(const int64_t width, node.Int("output_width", 1));
  HONE_ASSIGN_OR_RETURN(const int64_t ratio, node.Int("sampling_ratio", 0));
  HONE_ASSIGN_OR_RETURN(const double scale, node.Float("spatial_scale", 1));
  if (mode != "avg" || ratio < 1) {
    return node.UnimplementedError(
        "only the mode avg with a sampling_ratio of at least 1 is supported");
  }
  constexpr int64_t kMost = 1 << 12;
  if (std::min(height, width) < 1 || std::max({height, width, ratio}) > kMost ||
      std::max(height, width) * ratio > kMost) {
    return node.InvalidError(absl::StrCat("has more than ", kMost, " samples in a dimension"));
  }
  const bool half_pixel = transformation == "half_pixel";
  Formula f(composer);
  const ValueId regions = f.Cast(composer.input(1), ir::DType::kF32);
  // Where the samples of a dimension are, and whether they count. `extent`: of the image.
  const auto places = [&](int64_t first, int64_t cells, bool is_row, int64_t extent,
                          ValueId& counts) {
    const Shape column = {rois[0], 1, 1};
    const auto corner = [&](int64_t at) {
      return f.Plus(f.Times(f.Reshape(f.At(regions, 1, at), column), scale), half_pixel ? -0.5 : 0);
    };
    const ValueId begin = corner(first);
    ValueId size = f("Sub", {corner(first + 2), begin});
    if (!half_pixel) size = f("Max", {size, f.Number(1)});
    ir::Scalars steps;
    for (int64_t i = 0; i < cells * ratio; ++i) {
      steps.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(ratio * cells));
    }
    const Shape row = is_row ? Shape{1, 1, cells * ratio} : Shape{1, cells * ratio, 1};
    const ValueId at =
        f("Add",
          {begin, f("Mul", {size, composer.Constant("steps", {ir::DType::kF32, row}, steps)})});
    counts = f("And", {f("GreaterOrEqual", {at, f.Number(-1)}),
                       f("LessOrEqual", {at, f.Number(static_cast<double>(extent))})});
    return at;
  };
  ValueId row_counts = kNoValue, column_counts = kNoValue;
  const ValueId y = places(1, height, false, image[2], row_counts);
  const ValueId x = places(0, width, true, image[3], column_counts);
  const ValueId sample = f.Reshape(f.Cast(composer.input(2), ir::DType::kI64), {rois[0], 1, 1});
  HONE_RETURN_IF_ERROR(f.status());
  Sampler sampler(composer, f, {.mode = "linear", .padding = Padding::kBorder});
  ValueId read = sampler.Read(composer.input(0), sample, {y, x});
  read = f("Where", {f("And", {row_counts, column_counts}), read,
                     composer.Scalar("outside", composer.input(0), 0)});
  read = f.Reshape(read, {image[1], rois[0], height, ratio, width, ratio});
  read = f("ReduceMean", {read, composer.Ints("samples", {3, 5})}, {{"keepdims", int64_t{0}}});
  const ValueId result = SwapFirst(f, read, 4);
  HONE_RETURN_IF_ERROR(f.status());
  return Outputs{result};
}

absl::StatusOr<Outputs> AffineGrid(Rewrite& composer) {
  const graph::NodeView node = composer.view();
  if (!node.Has(0) || !node.Has(1)) return node.InvalidError("needs theta and a size");
  HONE_ASSIGN_OR_RETURN(const Shape size, node.Ints(1));
  HONE_ASSIGN_OR_RETURN(const int64_t align, node.Int("align_corners", 0));
  const int64_t dimensions = std::ssize(size) - 2;
  if (dimensions < 2 || dimensions > 3 ||
      node.Shape(0) != Shape{size[0], dimensions, dimensions + 1}) {
    return node.InvalidError(absl::StrCat("theta is ", node.Type(0).ToText(), " for a size of ",
                                          size.size(), " numbers"));
  }
  const Shape extents(size.begin() + 2, size.end());
  int64_t places = 1;
  for (const int64_t extent : extents) {
    if (extent < 1 || extent > (1 << 24) / places) {
      return node.InvalidError("the size is empty or too large");
    }
    places *= extent;
  }
  const graph::TensorType type{node.Type(0).dtype, {1, places, dimensions + 1}};
  HONE_RETURN_IF_ERROR(composer.Reserve(type));
  ir::Scalars points;  // (x, y, 1), from -1 to 1
  for (int64_t p = 0; p < places; ++p) {
    int64_t rest = p;
    for (int64_t d = dimensions - 1; d >= 0; --d) {
      const double extent = static_cast<double>(extents[d]),
                   at = static_cast<double>(rest % extents[d]);
      rest /= extents[d];
      points.push_back(align == 0   ? (2 * at + 1) / extent - 1
                       : extent > 1 ? 2 * at / (extent - 1) - 1
                                    : -1.0);
    }
    points.push_back(1.0);
  }
  Formula f(composer);
  const ValueId theta = f.Transpose(composer.input(0), {0, 2, 1});
  const ValueId grid = f("MatMul", {composer.Constant("points", type, points), theta});
  Shape shape = {size[0]};
  shape.insert(shape.end(), extents.begin(), extents.end());
  shape.push_back(dimensions);
  const ValueId result = f.Reshape(grid, shape);
  HONE_RETURN_IF_ERROR(f.status());
  return Outputs{result};
}

// Reads the image at offset places for each tap of the kernel, and multiplies the taps of a group
// by its part of the kernel.
absl::StatusOr<Outputs> DeformConv(Rewrite& composer) {
  enum Input { kImage, kKernel, kOffsets, kBias, kMask };
  const graph::NodeView node = composer.view();
  const Shape image = node.Shape(kImage), kernel = node.Shape(kKernel);
  if (image.size() != 4 || kernel.size() != 4) {
    return node.UnimplementedError(absl::StrCat(
        "only images with two dimensions are supported, not ", node.Type(kImage).ToText()));
  }
  HONE_ASSIGN_OR_RETURN(const int64_t groups, node.Int("group", 1));
  HONE_ASSIGN_OR_RETURN(const int64_t offset_groups, node.Int("offset_group", 1));
  HONE_ASSIGN_OR_RETURN(const Shape kernel_shape,
                        node.IntList("kernel_shape", {kernel[2], kernel[3]}));
  HONE_ASSIGN_OR_RETURN(const Shape strides, node.IntList("strides", {1, 1}));
  HONE_ASSIGN_OR_RETURN(const Shape dilations, node.IntList("dilations", {1, 1}));
  HONE_ASSIGN_OR_RETURN(const Shape pads, node.IntList("pads", {0, 0, 0, 0}));
  if (kernel_shape != Shape{kernel[2], kernel[3]} || strides.size() != 2 || dilations.size() != 2 ||
      pads.size() != 4) {
    return node.InvalidError("kernel_shape, strides, dilations or pads do not fit the kernel");
  }
  Shape to;  // the extents of the result
  for (const size_t d : {0, 1}) {
    constexpr int64_t kMost = 1 << 24, kMostTaps = 1 << 12;
    if (std::max({strides[d], dilations[d], pads[d], pads[2 + d], image[2 + d]}) > kMost ||
        std::min({strides[d], dilations[d], kernel[2 + d]}) < 1 || kernel[2 + d] > kMostTaps ||
        std::min(pads[d], pads[2 + d]) < 0) {
      return node.InvalidError("the kernel, strides, dilations or pads are out of range");
    }
    const int64_t room =
        image[2 + d] + pads[d] + pads[2 + d] - dilations[d] * (kernel[2 + d] - 1) - 1;
    if (room < 0) return node.InvalidError("its result is empty");
    to.push_back(room / strides[d] + 1);
  }
  if (std::min(groups, offset_groups) < 1 || image[1] % groups != 0 || kernel[0] % groups != 0 ||
      kernel[1] != image[1] / groups || image[1] % offset_groups != 0 ||
      offset_groups > (1 << 24) || node.Type(kImage).elements() == 0 ||
      node.Type(kKernel).elements() == 0 || !ir::IsFloat(node.Type(kImage).dtype)) {
    return node.InvalidError(absl::StrCat(
        "a kernel of type ", node.Type(kKernel).ToText(), " in ", groups, " groups with ",
        offset_groups, " of offsets does not fit an image of type ", node.Type(kImage).ToText()));
  }
  const int64_t taps = kernel[2] * kernel[3], samples = image[0] * offset_groups;
  const auto check = [&](int input, const Shape& shape) {
    if (!node.Has(input)) return absl::OkStatus();
    if (node.Shape(input) == shape && ir::IsFloat(node.Type(input).dtype)) return absl::OkStatus();
    return node.InvalidError(absl::StrCat("input ", input, " is ", node.Type(input).ToText(),
                                          " instead of [", absl::StrJoin(shape, ", "), "]"));
  };
  HONE_RETURN_IF_ERROR(check(kOffsets, {image[0], 2 * offset_groups * taps, to[0], to[1]}));
  HONE_RETURN_IF_ERROR(check(kMask, {image[0], offset_groups * taps, to[0], to[1]}));
  HONE_RETURN_IF_ERROR(check(kBias, {kernel[0]}));

  Formula f(composer);
  const ValueId offsets = f.Reshape(f.Cast(composer.input(kOffsets), ir::DType::kF32),
                                    {samples, taps, 2, to[0], to[1]});
  std::vector<ValueId> coordinates;
  for (const int64_t d : {0, 1}) {
    graph::TensorType type{ir::DType::kF32, {1, taps, 1, 1}};
    type.shape[2 + d] = to[d];
    HONE_RETURN_IF_ERROR(composer.Reserve(type));
    ir::Scalars places;  // without offsets
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t first = (d == 0 ? tap / kernel[3] : tap % kernel[3]) * dilations[d] - pads[d];
      for (int64_t i = 0; i < to[d]; ++i) {
        places.push_back(static_cast<double>(first + i * strides[d]));
      }
    }
    coordinates.push_back(
        f("Add", {f.At(offsets, 2, d), composer.Constant("places", type, places)}));
  }
  HONE_RETURN_IF_ERROR(composer.Reserve({ir::DType::kI64, {samples}}));
  // The channels of a group of offsets are an image of their own.
  const int64_t channels = image[1] / offset_groups;
  const ValueId images = f.Reshape(composer.input(kImage), {samples, channels, image[2], image[3]});
  HONE_RETURN_IF_ERROR(f.status());
  Sampler sampler(composer, f, {.mode = "linear"});
  ValueId read = sampler.Read(images, Column(composer, samples, 4), coordinates);
  if (node.Has(kMask)) {
    read = f("Mul", {read, f.Reshape(composer.input(kMask), {samples, taps, to[0], to[1]})});
  }
  const int64_t pixels = to[0] * to[1];
  read = f.Transpose(f.Reshape(read, {channels, image[0], offset_groups, taps, pixels}),
                     {1, 2, 0, 3, 4});
  const ValueId product =
      f("MatMul",
        {f.Reshape(composer.input(kKernel), {1, groups, kernel[0] / groups, kernel[1] * taps}),
         f.Reshape(read, {image[0], groups, kernel[1] * taps, pixels})});
  ValueId result = f.Reshape(product, {image[0], kernel[0], to[0], to[1]});
  if (node.Has(kBias)) {
    result = f("Add", {result, f.Reshape(composer.input(kBias), {kernel[0], 1, 1})});
  }
  HONE_RETURN_IF_ERROR(f.status());
  return Outputs{result};
}

absl::StatusOr<Outputs> MaxUnpool(Rewrite& composer) {
  const graph::NodeView node = composer.view();
  if (!node.Has(0) || !node.Has(1) || node.Rank(0) < 3 || node.Shape(0) != node.Shape(1) ||
      node.Type(0).elements() == 0) {
    return node.InvalidError("needs images and indices of the same shape");
  }
  const Shape from = node.Shape(0);
  const size_t n = from.size() - 2;
  HONE_ASSIGN_OR_RETURN(const Shape kernel, node.IntList("kernel_shape", {}));
  HONE_ASSIGN_OR_RETURN(const Shape strides, node.IntList("strides", Shape(n, 1)));
  HONE_ASSIGN_OR_RETURN(const Shape pads, node.IntList("pads", Shape(2 * n, 0)));
  if (kernel.size() != n || strides.size() != n || pads.size() != 2 * n) {
    return node.InvalidError("kernel_shape, strides or pads have a wrong length");
  }
  Shape to = {from[0], from[1]};
  int64_t size = 1;
  for (size_t d = 0; d < n; ++d) {
    constexpr int64_t kMost = 1 << 24;
    if (std::max({kernel[d], strides[d], pads[d], pads[n + d], from[d + 2]}) > kMost ||
        std::min(kernel[d], strides[d]) < 1 || std::min(pads[d], pads[n + d]) < 0) {
      return node.InvalidError("kernel_shape, strides or pads are out of range");
    }
    to.push_back((from[d + 2] - 1) * strides[d] - pads[d] - pads[n + d] + kernel[d]);
    if (to.back() < 1 || to.back() > kMost / size) {
      return node.InvalidError("its result is empty or too large");
    }
    size *= to.back();
  }
  const int64_t images = from[0] * from[1], elements = node.Type(0).elements() / images;
  // The indices count all elements of all images. Each image is filled alone, because each of its
  // elements looks through its updates.
  const graph::TensorType filling{node.Type(0).dtype, {images, size}};
  HONE_RETURN_IF_ERROR(composer.Reserve(filling));
  ir::Scalars begins, zeros(images * size, ir::CastTo(node.Type(0).dtype, 0));
  for (int64_t i = 0; i < images; ++i) begins.push_back(i * size);
  Formula f(composer);
  const ValueId indices =
      f("Sub", {f.Reshape(composer.input(1), {images, elements}),
                composer.Constant("begins", {ir::DType::kI64, {images, 1}}, begins)});
  const ValueId filled = f("ScatterElements",
                           {composer.Constant("zeros", filling, zeros), indices,
                            f.Reshape(composer.input(0), {images, elements})},
                           {{"axis", int64_t{1}}});
  ValueId result = f.Reshape(filled, to);
  HONE_RETURN_IF_ERROR(f.status());
  if (node.Has(2)) {
    HONE_ASSIGN_OR_RETURN(const Shape wanted, node.Ints(2));
    if (wanted.size() != to.size()) return node.InvalidError("output_shape has a wrong length");
    Shape padding(2 * to.size(), 0);
    for (size_t d = 0; d < to.size(); ++d) {
      if (wanted[d] < to[d]) return node.InvalidError("output_shape is smaller than the result");
      padding[to.size() + d] = wanted[d] - to[d];
    }
    result = f("Pad", {result, composer.Ints("padding", padding)});
    HONE_RETURN_IF_ERROR(f.status());
  }
  return Outputs{result};
}

}  // namespace

absl::Span<const Composition> SamplingCompositions() {
  static constexpr Composition kCompositions[] = {
      {"AffineGrid", AffineGrid, "a constant size"},
      {"DeformConv", DeformConv, "images with two dimensions", nullptr, {3, 5}},
      {"GridSample", GridSample, "float types"},
      {"MaxUnpool", MaxUnpool,
       "a constant output shape; each element looks through the updates of its image"},
      {"RoiAlign", RoiAlign, "averages; a sampling_ratio of at least 1"},
  };
  return kCompositions;
}

}  // namespace hone::onnx

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <numbers>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/onnx/compose/composition.h"
#include "common/base/status_macros.h"

// Windows, Fourier transforms as products with constant matrices, and the matrix of Mel filters.
namespace hone::onnx {
namespace {

using graph::kNoValue;
using graph::ValueId;
using Outputs = std::vector<ValueId>;

constexpr int64_t kMostElements = int64_t{1} << 24;  // of a constant matrix or window

// The only element of a constant input, as a whole number in a range.
absl::StatusOr<int64_t> WholeInput(const Composer& composer, int input, int64_t least,
                                   int64_t most) {
  const graph::NodeView node = composer.view();
  if (!node.Has(input)) return node.InvalidError(absl::StrCat("input ", input, " is missing"));
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> elements, node.Ints(input));
  if (elements.size() == 1 && least <= elements[0] && elements[0] <= most) return elements[0];
  return node.InvalidError(
      absl::StrCat("input ", input, " must be one number from ", least, " to ", most));
}

// The type in an attribute with a number of ONNX; f32 without it.
absl::StatusOr<ir::DType> TypeAttribute(const Composer& composer, absl::string_view name) {
  if (!composer.view().HasAttribute(name)) return ir::DType::kF32;
  HONE_ASSIGN_OR_RETURN(const ir::DType dtype, graph::ElementTypeAttribute(composer.view(), name));
  if (!ir::IsPacked(dtype)) return dtype;
  return composer.view().UnimplementedError("elements of 4 bits are not supported");
}

// a₀ − a₁·cos(2πi/n) + a₂·cos(4πi/n).
absl::StatusOr<Outputs> CosineWindow(Composer& composer, double a0, double a1, double a2) {
  HONE_ASSIGN_OR_RETURN(const int64_t size, WholeInput(composer, 0, 0, kMostElements));
  HONE_ASSIGN_OR_RETURN(const int64_t periodic, composer.view().Int("periodic", 1));
  HONE_ASSIGN_OR_RETURN(const ir::DType dtype, TypeAttribute(composer, "output_datatype"));
  HONE_RETURN_IF_ERROR(composer.Reserve({dtype, {size}}));
  const double n = static_cast<double>(periodic != 0 ? size : std::max<int64_t>(size - 1, 1));
  ir::Scalars elements;
  for (int64_t i = 0; i < size; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / n;
    elements.push_back(ir::CastTo(dtype, a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle)));
  }
  return Outputs{composer.Constant("window", {dtype, {size}}, elements)};
}

absl::StatusOr<Outputs> HannWindow(Rewrite& composer) {
  return CosineWindow(composer, 0.5, 0.5, 0);
}
absl::StatusOr<Outputs> HammingWindow(Rewrite& composer) {
  return CosineWindow(composer, 25.0 / 46, 21.0 / 46, 0);
}
absl::StatusOr<Outputs> BlackmanWindow(Rewrite& composer) {
  return CosineWindow(composer, 0.42, 0.5, 0.08);
}

// A discrete Fourier transform of `length` elements as a product with a matrix, for a signal of
// which the first `given` elements are not 0.
struct Transform {
  int64_t given, length, frequencies;
  bool is_complex;  // whether the signal has an imaginary part
  bool inverse;

  // The product of the signal, [given, real and imaginary part], with column (frequency, part).
  double At(int64_t i, int64_t part, int64_t frequency, int64_t to) const {
    // The product of two numbers below 2^24 is exact; its remainder keeps the angle accurate.
    const double turn = static_cast<double>(i * frequency % length) / static_cast<double>(length);
    const double angle = (inverse ? 2 : -2) * std::numbers::pi * turn;
    const double scale = inverse ? 1 / static_cast<double>(length) : 1;
    if (part == to) return scale * std::cos(angle);
    return scale * (part == 0 ? std::sin(angle) : -std::sin(angle));
  }
};

absl::StatusOr<ValueId> MatrixOf(Composer& composer, const Transform& t, ir::DType dtype) {
  const int64_t parts = t.is_complex ? 2 : 1;
  const int64_t rows = t.given * parts, columns = 2 * t.frequencies;
  if (rows > kMostElements / std::max<int64_t>(columns, 1)) {
    return composer.view().UnimplementedError(
        absl::StrCat("a transform of ", t.length, " elements is not supported"));
  }
  HONE_RETURN_IF_ERROR(composer.Reserve({dtype, {rows, columns}}));
  ir::Scalars elements;
  elements.reserve(rows * columns);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      elements.push_back(ir::CastTo(dtype, t.At(row / parts, row % parts, column / 2, column % 2)));
    }
  }
  return composer.Constant("transform", {dtype, {rows, columns}}, elements);
}

// The number of parts of complex numbers, the last extent of a signal.
absl::StatusOr<bool> IsComplex(const Composer& composer, ValueId signal) {
  const graph::TensorType& type = composer.TypeOf(signal);
  if (ir::IsFloat(type.dtype) && type.shape.size() >= 2 && type.elements() > 0) {
    if (type.shape.back() == 1 || type.shape.back() == 2) return type.shape.back() == 2;
  }
  return composer.view().InvalidError(
      absl::StrCat("the signal is ", type.ToText(), "; its last extent must be 1 or 2"));
}

absl::StatusOr<Outputs> Dft(Rewrite& composer) {
  const graph::NodeView node = composer.view();
  ValueId signal = composer.input(0);
  if (signal == kNoValue) return node.InvalidError("input 0 is missing");
  Transform t;
  HONE_ASSIGN_OR_RETURN(t.is_complex, IsComplex(composer, signal));
  const int64_t rank = std::ssize(composer.TypeOf(signal).shape);
  // Since opset 20, the axis is an input.
  HONE_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", composer.opset() < 20 ? 1 : -2));
  if (node.Has(2)) {
    HONE_ASSIGN_OR_RETURN(axis, WholeInput(composer, 2, -rank, rank - 2));
  }
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank - 2) {
    return node.InvalidError(
        absl::StrCat("transforms axis ", axis, " of ", composer.TypeOf(signal).ToText()));
  }
  HONE_ASSIGN_OR_RETURN(const int64_t inverse, node.Int("inverse", 0));
  HONE_ASSIGN_OR_RETURN(const int64_t onesided, node.Int("onesided", 0));
  t.inverse = inverse != 0;
  if (onesided != 0 && (t.inverse || t.is_complex)) {
    return node.UnimplementedError("onesided is supported for forward transforms of real signals");
  }
  t.length = composer.TypeOf(signal).shape[axis];
  if (node.Has(1)) {
    HONE_ASSIGN_OR_RETURN(t.length, WholeInput(composer, 1, 1, kMostElements));
  }
  t.given = std::min(t.length, composer.TypeOf(signal).shape[axis]);
  t.frequencies = onesided != 0 ? t.length / 2 + 1 : t.length;
  HONE_ASSIGN_OR_RETURN(const ValueId matrix, MatrixOf(composer, t, composer.TypeOf(signal).dtype));
  HONE_ASSIGN_OR_RETURN(signal, composer.Slice(signal, axis, 0, t.given));
  // The axis moves behind the others, before the parts.
  std::vector<int64_t> order, back(rank);
  for (int64_t d = 0; d < rank; ++d) {
    if (d != axis && d != rank - 1) order.push_back(d);
  }
  order.push_back(axis);
  order.push_back(rank - 1);
  for (int64_t d = 0; d < rank; ++d) back[order[d]] = d;
  HONE_ASSIGN_OR_RETURN(signal, composer.Transpose(signal, order));
  std::vector<int64_t> shape = composer.TypeOf(signal).shape;
  shape.pop_back();
  shape.back() *= t.is_complex ? 2 : 1;
  HONE_ASSIGN_OR_RETURN(signal, composer.Reshape(signal, shape));
  HONE_ASSIGN_OR_RETURN(ValueId result, composer.Apply("MatMul", {signal, matrix}));
  shape.back() = t.frequencies;
  shape.push_back(2);
  HONE_ASSIGN_OR_RETURN(result, composer.Reshape(result, shape));
  HONE_ASSIGN_OR_RETURN(result, composer.Transpose(result, back));
  return Outputs{result};
}

absl::StatusOr<Outputs> Stft(Rewrite& composer) {
  const graph::NodeView node = composer.view();
  const ValueId signal = composer.input(0);
  if (signal == kNoValue || composer.TypeOf(signal).shape.size() != 3) {
    return node.InvalidError("the signal must have the rank 3");
  }
  Transform t{.inverse = false};
  HONE_ASSIGN_OR_RETURN(t.is_complex, IsComplex(composer, signal));
  const std::vector<int64_t> shape = composer.TypeOf(signal).shape;
  const int64_t batch = shape[0], elements = shape[1], parts = shape[2];
  HONE_ASSIGN_OR_RETURN(const int64_t step, WholeInput(composer, 1, 1, elements));
  HONE_ASSIGN_OR_RETURN(const int64_t onesided, node.Int("onesided", 1));
  const ValueId window = composer.input(2);
  if (!node.Has(2) && !node.Has(3)) return node.InvalidError("needs a window or a frame length");
  if (node.Has(2) && node.Rank(2) != 1) return node.InvalidError("the window must have the rank 1");
  t.length = node.Has(2) ? node.Shape(2)[0] : 0;
  if (node.Has(3)) {
    HONE_ASSIGN_OR_RETURN(t.length, WholeInput(composer, 3, 1, elements));
  }
  if (t.length < 1 || t.length > elements || (node.Has(2) && node.Shape(2)[0] != t.length)) {
    return node.InvalidError(absl::StrCat(
        "frames of ", t.length, " elements do not fit a signal of ", elements, " or the window"));
  }
  if (onesided != 0 && t.is_complex) {
    return node.InvalidError("onesided needs a real signal");
  }
  t.given = t.length;
  t.frequencies = onesided != 0 ? t.length / 2 + 1 : t.length;
  const int64_t frames = (elements - t.length) / step + 1;
  HONE_ASSIGN_OR_RETURN(ValueId matrix, MatrixOf(composer, t, composer.TypeOf(signal).dtype));
  if (window != kNoValue) {  // it scales the rows of the matrix
    HONE_ASSIGN_OR_RETURN(const ValueId factors, composer.Reshape(window, {t.length, 1, 1}));
    HONE_ASSIGN_OR_RETURN(matrix, composer.Reshape(matrix, {t.length, parts, 2 * t.frequencies}));
    HONE_ASSIGN_OR_RETURN(matrix, composer.Apply("Mul", {matrix, factors}));
    HONE_ASSIGN_OR_RETURN(matrix, composer.Reshape(matrix, {t.length * parts, 2 * t.frequencies}));
  }
  HONE_RETURN_IF_ERROR(composer.Reserve({ir::DType::kI64, {frames, t.length}}));
  ir::Scalars places;
  for (int64_t f = 0; f < frames; ++f) {
    for (int64_t i = 0; i < t.length; ++i) places.push_back(f * step + i);
  }
  const ValueId indices =
      composer.Constant("frames", {ir::DType::kI64, {frames, t.length}}, places);
  HONE_ASSIGN_OR_RETURN(ValueId framed,
                        composer.Apply("Gather", {signal, indices}, {{"axis", int64_t{1}}}));
  HONE_ASSIGN_OR_RETURN(framed, composer.Reshape(framed, {batch, frames, t.length * parts}));
  HONE_ASSIGN_OR_RETURN(ValueId result, composer.Apply("MatMul", {framed, matrix}));
  HONE_ASSIGN_OR_RETURN(result, composer.Reshape(result, {batch, frames, t.frequencies, 2}));
  return Outputs{result};
}

absl::StatusOr<Outputs> MelWeightMatrix(Rewrite& composer) {
  const graph::NodeView node = composer.view();
  HONE_ASSIGN_OR_RETURN(const int64_t bins, WholeInput(composer, 0, 1, 1 << 16));
  HONE_ASSIGN_OR_RETURN(const int64_t length, WholeInput(composer, 1, 1, 1 << 24));
  HONE_ASSIGN_OR_RETURN(const int64_t rate, WholeInput(composer, 2, 1, 1 << 30));
  double edges[2];
  for (const int input : {3, 4}) {
    if (!node.Has(input)) return node.InvalidError(absl::StrCat("input ", input, " is missing"));
    HONE_ASSIGN_OR_RETURN(const std::vector<ir::Scalar> hertz, node.Elements(input));
    if (hertz.size() != 1) return node.InvalidError("a frequency must have one element");
    edges[input - 3] = 2595 * std::log10(1 + hertz[0].real() / 700);
  }
  HONE_ASSIGN_OR_RETURN(const ir::DType dtype, TypeAttribute(composer, "output_datatype"));
  const int64_t rows = length / 2 + 1;
  // The elements of the spectrum where the filters begin and end.
  std::vector<int64_t> places;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double mel =
        edges[0] + static_cast<double>(i) * (edges[1] - edges[0]) / static_cast<double>(bins + 2);
    const double hertz = 700 * (std::pow(10, mel / 2595) - 1);
    const double place =
        std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(place >= 0 && place < static_cast<double>(rows))) {
      return node.InvalidError(
          absl::StrCat("a filter lies outside of the spectrum of ", rows, " elements"));
    }
    places.push_back(static_cast<int64_t>(place));
  }
  if (rows > kMostElements / bins) {
    return node.UnimplementedError(
        absl::StrCat("a matrix of ", rows, " rows and ", bins, " columns is not supported"));
  }
  HONE_RETURN_IF_ERROR(composer.Reserve({dtype, {rows, bins}}));
  ir::Scalars elements(rows * bins, ir::CastTo(dtype, 0.0));
  for (int64_t i = 0; i < bins; ++i) {
    const int64_t lower = places[i], center = places[i + 1], upper = places[i + 2];
    const auto set = [&](int64_t row, double value) {
      elements[row * bins + i] = ir::CastTo(dtype, value);
    };
    if (lower == center) set(center, 1);
    for (int64_t row = lower; row <= center && lower < center; ++row) {
      set(row, static_cast<double>(row - lower) / static_cast<double>(center - lower));
    }
    for (int64_t row = center; row < upper; ++row) {
      set(row, static_cast<double>(upper - row) / static_cast<double>(upper - center));
    }
  }
  return Outputs{composer.Constant("filters", {dtype, {rows, bins}}, elements)};
}

}  // namespace

absl::Span<const Composition> SignalCompositions() {
  static constexpr Composition kCompositions[] = {
      {"BlackmanWindow", BlackmanWindow, "a constant size"},
      {"DFT", Dft, "a constant length and axis; a product with a matrix"},
      {"HammingWindow", HammingWindow, "a constant size"},
      {"HannWindow", HannWindow, "a constant size"},
      {"MelWeightMatrix", MelWeightMatrix, "constant inputs"},
      {"STFT", Stft, "a constant step and frame length; a product with a matrix"},
  };
  return kCompositions;
}

}  // namespace hone::onnx

#include "client/network/graph/op/quantized.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "client/network/graph/op/axes.h"
#include "client/network/graph/op/convolution.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "client/network/graph/op/matmul.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

using ir::DType;

bool IsEverywhere(const NodeView& node, int input, ir::Scalar value) {
  if (!node.IsConstant(input)) return false;
  const auto elements = node.Elements(input);
  return std::all_of(elements->begin(), elements->end(),
                     [&](const ir::Scalar& element) { return element == value; });
}

// Whether a scale is known to be 1.
bool IsOne(const NodeView& node, int scale) { return IsEverywhere(node, scale, ir::Scalar(1.0)); }

// An f32 value rounded to nearest even, plus a zero point, saturated to u8 or i8.
std::string Saturated(absl::string_view value, absl::string_view zero_point, DType dtype) {
  const bool is_signed = dtype == DType::kI8;
  std::string rounded = absl::StrCat("round(", value, ")");
  if (!zero_point.empty()) absl::StrAppend(&rounded, " + f32(", zero_point, ")");
  return absl::StrCat(ir::DTypeName(dtype), "(min(max(", rounded, ", ",
                      is_signed ? "-128.0" : "0.0", "), ", is_signed ? "127.0" : "255.0", "))");
}

// Returns the element of a scale or zero point that has either one element or one per channel.
std::string PerChannel(const NodeView& node, StageWriter& writer, int input,
                       absl::string_view channel) {
  if (node.Type(input).elements() == 1) return First(node, writer, input);
  return writer.In(input, {std::string(channel)});
}

// Checks the size of a scale or zero point. InvalidArgument: it has neither one element nor one
// per channel.
absl::Status NeedPerChannel(const NodeView& node, int input, int64_t channels) {
  if (!node.Has(input) || node.Type(input).elements() == 1) return absl::OkStatus();
  if (node.Shape(input) == std::vector<int64_t>{channels}) return absl::OkStatus();
  return node.InvalidError(absl::StrCat("input ", input, " is ", node.Type(input).ToText(),
                                        ", but must have 1 element, or 1 for each of the ",
                                        channels, " channels"));
}

// How the scale and the zero point, inputs 1 and 2, vary.
struct Granularity {
  int64_t axis = -1;  // along it; -1: they have one element
  // If not 0: they have the shape of input 0, but one element for each block along the axis.
  int64_t block = 0;
};

absl::Status NeedPerBlock(const NodeView& node, const Granularity& granularity) {
  std::vector<int64_t> shape = node.Shape(0);
  shape[granularity.axis] = ir::CeilDivInt(shape[granularity.axis], granularity.block);
  if (node.Shape(1) == shape) return absl::OkStatus();
  return node.InvalidError(absl::StrCat("input 1 is ", node.Type(1).ToText(), ", but blocks of ",
                                        granularity.block, " need the shape [",
                                        absl::StrJoin(shape, ", "), "]"));
}

absl::StatusOr<Granularity> GranularityOf(const NodeView& node) {
  Granularity granularity;
  // ONNX Runtime writes scales of shape [1] with zero points of shape [].
  const bool single = node.Has(2) && node.Type(1).elements() == 1 && node.Type(2).elements() == 1;
  if (node.Has(2) && !single && node.Shape(2) != node.Shape(1)) {
    return node.InvalidError("the scale and the zero point have different shapes");
  }
  HONE_ASSIGN_OR_RETURN(granularity.block, node.Int("block_size", 0));
  if (granularity.block < 0) return node.InvalidError("block_size is negative");
  if (node.Type(1).elements() == 1 && granularity.block == 0) return granularity;
  HONE_ASSIGN_OR_RETURN(granularity.axis, node.AxisAttribute("axis", 1, node.Rank(0)));
  HONE_RETURN_IF_ERROR(granularity.block > 0
                           ? NeedPerBlock(node, granularity)
                           : NeedPerChannel(node, 1, node.Shape(0)[granularity.axis]));
  return granularity;
}

// Returns the element of the scale or the zero point that belongs to the element of input 0 at
// these axes.
std::string ParameterAt(const NodeView& node, StageWriter& writer, int input,
                        const Granularity& granularity, std::vector<std::string> axes) {
  const int64_t axis = granularity.axis;
  if (granularity.block == 0) return PerChannel(node, writer, input, axis < 0 ? "0" : axes[axis]);
  absl::StrAppend(&axes[axis], " / ", granularity.block);
  return writer.In(input, axes);
}

absl::StatusOr<Types> InferQuantize(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedNumber(node, 0));
  HONE_RETURN_IF_ERROR(NeedFloat(node, 1));
  HONE_RETURN_IF_ERROR(GranularityOf(node).status());
  HONE_ASSIGN_OR_RETURN(const int64_t saturate, node.Int("saturate", 1));
  if (saturate == 0) return node.UnimplementedError("saturate=0 is not supported");
  DType dtype = DType::kU8;
  HONE_ASSIGN_OR_RETURN(const int64_t output, node.Int("output_dtype", 0));
  if (output != 0) {
    HONE_ASSIGN_OR_RETURN(dtype, ElementTypeAttribute(node, "output_dtype"));
  }
  if (node.Has(2)) dtype = node.Type(2).dtype;
  if (IsByte(dtype) || IsShortFloat(dtype)) return Types{{dtype, node.Shape(0)}};
  return node.UnimplementedError(
      absl::StrCat("quantizes to ", ir::DTypeName(dtype), ", which is not supported"));
}

absl::Status DefineQuantize(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Granularity granularity, GranularityOf(node));
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  const auto parameter = [&](int input) {
    return ParameterAt(node, writer, input, granularity, axes);
  };
  std::string scaled = Convert(node.Type(0).dtype, DType::kF32, writer.In(0, axes));
  if (!IsOne(node, 1)) {
    absl::StrAppend(&scaled, " / ", Convert(node.Type(1).dtype, DType::kF32, parameter(1)));
  }
  const DType dtype = writer.OutputType(0).dtype;
  if (IsShortFloat(dtype)) {
    // Infinities saturate like large numbers.
    const absl::string_view most = dtype == DType::kF8E5M2 ? "57344.0" : "448.0";
    writer.Output(
        0, axes,
        absl::StrCat(ir::DTypeName(dtype), "(min(max(", scaled, ", -", most, "), ", most, "))"));
    return absl::OkStatus();
  }
  const std::string zero_point = IsZero(node, 2) ? "" : parameter(2);
  writer.Output(0, axes, Saturated(scaled, zero_point, dtype));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferDequantize(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedFloat(node, 1));
  HONE_RETURN_IF_ERROR(GranularityOf(node).status());
  const DType dtype = node.Type(0).dtype;
  if (!IsByte(ir::LoadedAs(dtype)) && !IsShortFloat(dtype) && dtype != DType::kI32) {
    return node.InvalidError(absl::StrCat("cannot dequantize ", node.Type(0).ToText()));
  }
  if (node.Has(2) && node.Type(2).dtype != dtype) {
    return node.InvalidError("the types of the zero point and the input differ");
  }
  return Types{{node.Type(1).dtype, node.Shape(0)}};
}

absl::Status DefineDequantize(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Granularity granularity, GranularityOf(node));
  const std::vector<std::string> axes = StageWriter::Axes(node.Shape(0));
  const auto parameter = [&](int input) {
    return ParameterAt(node, writer, input, granularity, axes);
  };
  const DType dtype = node.Type(0).dtype, scale = node.Type(1).dtype;
  const DType whole = IsShortFloat(dtype) ? DType::kF32 : DType::kI32;
  std::string value = writer.In(0, axes);
  if (!IsZero(node, 2)) {
    const std::string zero_point = parameter(2);
    value = absl::StrCat(Convert(dtype, whole, value), " - ", Convert(dtype, whole, zero_point));
    value = Convert(whole, DType::kF32, value);
  } else {
    value = Convert(dtype, DType::kF32, value);
  }
  if (whole == DType::kF32) value = absl::StrCat("(", value, ")");
  writer.Output(0, axes,
                Convert(DType::kF32, scale,
                        absl::StrCat(value, " * ", Convert(scale, DType::kF32, parameter(1)))));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferDynamicQuantize(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedType(node, 0, DType::kF32));
  return Types{{DType::kU8, node.Shape(0)}, {DType::kF32, {}}, {DType::kU8, {}}};
}

// Maps the range of the elements, extended to include 0, to the range of u8. If all elements are 0,
// the range counts as 1.
absl::Status DefineDynamicQuantize(const NodeView& node, StageWriter& writer) {
  const std::vector<int64_t>& shape = node.Shape(0);
  const std::vector<std::string> members = StageWriter::Axes(shape, "k"),
                                 axes = StageWriter::Axes(shape);
  const auto extreme = [&](absl::string_view reducer) {
    const std::vector<int64_t> extents = shape.empty() ? std::vector<int64_t>{1} : shape;
    return writer.Stage(reducer, {"i"}, {1},
                        absl::StrCat(Reduction(reducer, members, extents), writer.In(0, members)));
  };
  const std::string least = absl::StrCat("min(", extreme("min"), "[0], 0.0)");
  const std::string most = absl::StrCat("max(", extreme("max"), "[0], 0.0)");
  const std::string range =
      absl::StrCat(writer.Stage("range", {"i"}, {1}, absl::StrCat(most, " - ", least)), "[0]");
  const std::string scale_stage = writer.Stage(
      "scale", {"i"}, {1}, absl::Substitute("select($0 == 0.0, 1.0, $0) / 255.0", range));
  const std::string scale = absl::StrCat(scale_stage, "[0]");
  const std::string zero_stage = writer.Stage(
      "zero", {"i"}, {1}, Saturated(absl::StrCat("-", least, " / ", scale), "", DType::kU8));
  const std::string zero = absl::StrCat(zero_stage, "[0]");
  if (writer.WantsOutput(0)) {
    writer.Output(0, axes,
                  Saturated(absl::StrCat(writer.In(0, axes), " / ", scale), zero, DType::kU8));
  }
  if (writer.WantsOutput(1)) writer.Output(1, {"i"}, scale);
  if (writer.WantsOutput(2)) writer.Output(2, {"i"}, zero);
  return absl::OkStatus();
}

// Products of u8 and i8 matrices.

// The positions of the inputs, which differ between QLinearMatMul and MatMulInteger.
struct ProductInputs {
  int a, b, a_zero, b_zero;
};
constexpr ProductInputs kMatMulInteger = {0, 1, 2, 3};
constexpr ProductInputs kQLinearMatMul = {0, 3, 2, 5};

absl::Status Check(const NodeView& node, const ProductInputs& in, const Product& product) {
  for (const int input : {in.a, in.b}) {
    if (IsByte(node.Type(input).dtype)) continue;
    return node.InvalidError(absl::StrCat("multiplies ", node.Type(input).ToText()));
  }
  HONE_RETURN_IF_ERROR(NeedPerChannel(node, in.a_zero, product.rows()));
  return NeedPerChannel(node, in.b_zero, product.columns());
}

// Writes the product with i32 elements and returns its value at `axes`. Zero points are subtracted
// from the sum of products: Σ(a − p)(b − q) = Σab − qΣa − pΣb + kpq. Instructions for u8 and i8 can
// then compute Σab.
std::string WriteProduct(const NodeView& node, StageWriter& writer, const ProductInputs& in,
                         const Product& product, const std::vector<std::string>& axes) {
  const auto whole = [&](int input, const std::vector<std::string>& indices) {
    return Convert(node.Type(input).dtype, DType::kI32, writer.In(input, indices));
  };
  const std::string over = Reduction("sum", {"k"}, {product.inner()});
  const std::string a = whole(in.a, product.Left(axes)), b = whole(in.b, product.Right(axes));
  const std::string sum =
      writer.Stage("product", axes, product.shape(), absl::StrCat(over, a, " * ", b));
  std::string value = Element(sum, axes);
  const bool shifts_a = !IsZero(node, in.a_zero), shifts_b = !IsZero(node, in.b_zero);
  const auto zero = [&](int input, const std::string& channel) {
    return Convert(node.Type(input).dtype, DType::kI32, PerChannel(node, writer, input, channel));
  };
  if (shifts_b) {
    const std::string sums = writer.Stage("rows", axes, product.RowShape(), absl::StrCat(over, a));
    absl::StrAppend(&value, " - ", Element(sums, product.RowOf(axes)), " * ",
                    zero(in.b_zero, product.Column(axes)));
  }
  if (shifts_a) {
    const std::string sums =
        writer.Stage("columns", axes, product.ColumnShape(), absl::StrCat(over, b));
    absl::StrAppend(&value, " - ", Element(sums, product.ColumnOf(axes)), " * ",
                    zero(in.a_zero, product.Row(axes)));
  }
  if (shifts_a && shifts_b) {
    absl::StrAppend(&value, " + ", zero(in.a_zero, product.Row(axes)), " * ",
                    zero(in.b_zero, product.Column(axes)), " * ", product.inner());
  }
  return value;
}

absl::StatusOr<Types> InferMatMulInteger(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const Product product, Product::Of(node, 0, 1));
  HONE_RETURN_IF_ERROR(Check(node, kMatMulInteger, product));
  return Types{{DType::kI32, product.shape()}};
}

absl::Status DefineMatMulInteger(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Product product, Product::Of(node, 0, 1));
  const std::vector<std::string> axes = StageWriter::Axes(product.shape());
  writer.Output(0, axes, WriteProduct(node, writer, kMatMulInteger, product, axes));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferQLinearMatMul(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(const Product product, Product::Of(node, 0, 3));
  HONE_RETURN_IF_ERROR(Check(node, kQLinearMatMul, product));
  HONE_RETURN_IF_ERROR(NeedPerChannel(node, 1, product.rows()));
  HONE_RETURN_IF_ERROR(NeedPerChannel(node, 4, product.columns()));
  if (!IsByte(node.Type(7).dtype) || node.Type(6).elements() != 1 || node.Type(7).elements() != 1) {
    return node.UnimplementedError("the result needs one scale and one zero point of u8 or i8");
  }
  for (const int scale : {1, 4, 6}) HONE_RETURN_IF_ERROR(NeedFloat(node, scale));
  return Types{{node.Type(7).dtype, product.shape()}};
}

absl::Status DefineQLinearMatMul(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Product product, Product::Of(node, 0, 3));
  const std::vector<std::string> axes = StageWriter::Axes(product.shape());
  const std::string sum = WriteProduct(node, writer, kQLinearMatMul, product, axes);
  const auto scale = [&](int input, const std::string& channel) {
    return Convert(node.Type(input).dtype, DType::kF32, PerChannel(node, writer, input, channel));
  };
  const std::string scaled =
      absl::StrCat("f32(", sum, ") * (", scale(1, product.Row(axes)), " * ",
                   scale(4, product.Column(axes)), " / ", scale(6, "0"), ")");
  const std::string zero_point = IsZero(node, 7) ? "" : First(node, writer, 7);
  writer.Output(0, axes, Saturated(scaled, zero_point, node.Type(7).dtype));
  return absl::OkStatus();
}

// Convolutions of u8 and i8 images.

// The positions of the inputs, which differ between QLinearConv and ConvInteger.
struct ConvolutionInputs {
  int x, w, x_zero, w_zero;
};
constexpr ConvolutionInputs kConvInteger = {0, 1, 2, 3};
constexpr ConvolutionInputs kQLinearConv = {0, 3, 2, 5};

absl::StatusOr<Convolution> Check(const NodeView& node, const ConvolutionInputs& in) {
  HONE_ASSIGN_OR_RETURN(Convolution c, Convolution::Of(node, in.x, in.w));
  for (const int input : {in.x, in.w}) {
    if (IsByte(node.Type(input).dtype)) continue;
    return node.InvalidError(absl::StrCat("convolves ", node.Type(input).ToText()));
  }
  HONE_RETURN_IF_ERROR(NeedPerChannel(node, in.x_zero, 1));
  HONE_RETURN_IF_ERROR(NeedPerChannel(node, in.w_zero, c.groups * c.group_outputs));
  return c;
}

// Writes the convolution with i32 elements and returns its value at c.Axes(). Zero points are
// subtracted from the sum of products, as for matrix products. Padding equals the zero point of
// the image, so sums over the kernel leave out the taps that read padding.
std::string WriteSum(const NodeView& node, StageWriter& writer, const ConvolutionInputs& in,
                     const Convolution& c) {
  const auto whole = [&](int input, const std::vector<std::string>& indices) {
    return Convert(node.Type(input).dtype, DType::kI32, writer.In(input, indices));
  };
  const std::vector<std::string> axes = c.Axes();
  const size_t channels = c.channels_last ? axes.size() - 1 : 1;
  const std::string x = whole(in.x, c.ImageIndices()), w = whole(in.w, c.KernelIndices());
  std::string value =
      Element(writer.Stage("conv", axes, c.shape, absl::StrCat(c.Reduced(), x, " * ", w)), axes);
  const bool shifts_x = !IsZero(node, in.x_zero), shifts_w = !IsZero(node, in.w_zero);
  const auto zero = [&](int input) {
    return Convert(node.Type(input).dtype, DType::kI32, PerChannel(node, writer, input, "c"));
  };
  if (shifts_w) {
    // The sum of the image over the window, which is the same for all output channels of a group.
    std::vector<int64_t> shape = c.shape;
    std::vector<std::string> at = axes;
    if (c.groups == 1) {
      shape[channels] = 1;
      at[channels] = "0";
    }
    const std::string sums = writer.Stage("image", axes, shape, absl::StrCat(c.Reduced(), x));
    absl::StrAppend(&value, " - ", Element(sums, at), " * ", zero(in.w_zero));
  }
  if (shifts_x) {
    // The kernel is summed over channels first, because the sum over taps depends on the position.
    std::vector<std::string> taps = c.KernelIndices();
    std::vector<int64_t> shape = node.Shape(in.w);
    const auto reduced = static_cast<ptrdiff_t>(c.channels_last ? taps.size() - 2 : 1);
    taps.erase(taps.begin() + reduced);
    shape.erase(shape.begin() + reduced);
    const std::string kernel = writer.Stage(
        "kernel", taps, shape,
        absl::StrCat(c.group_inputs > 1 ? Reduction("sum", {"k"}, {c.group_inputs}) : "", w));
    const auto weight = [&](const std::string& factor) {
      return absl::StrCat(c.Reduced(/*channels=*/false), Element(kernel, taps), factor);
    };
    std::vector<int64_t> window_shape = c.shape;
    window_shape[0] = 1;
    const std::string sums = writer.Stage("window", axes, window_shape, weight(""));
    std::vector<std::string> at = axes;
    at[0] = "0";
    absl::StrAppend(&value, " - ", Element(sums, at), " * ", zero(in.x_zero));
    if (shifts_w) {
      // The number of taps inside the image, times the channels.
      std::vector<int64_t> count_shape = window_shape;
      count_shape[channels] = 1;
      const std::string count =
          writer.Stage("count", axes, count_shape,
                       absl::StrCat(c.Reduced(/*channels=*/false), "i32(", c.group_inputs, ")"));
      at[channels] = "0";
      absl::StrAppend(&value, " + ", Element(count, at), " * ", zero(in.x_zero), " * ",
                      zero(in.w_zero));
    }
  }
  return value;
}

absl::StatusOr<Types> InferConvInteger(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(Convolution c, Check(node, kConvInteger));
  return Types{{DType::kI32, std::move(c.shape)}};
}

absl::Status DefineConvInteger(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Convolution c, Check(node, kConvInteger));
  writer.Output(0, c.Axes(), WriteSum(node, writer, kConvInteger, c));
  return absl::OkStatus();
}

absl::StatusOr<Types> InferQLinearConv(const NodeView& node) {
  HONE_ASSIGN_OR_RETURN(Convolution c, Check(node, kQLinearConv));
  HONE_RETURN_IF_ERROR(NeedPerChannel(node, 4, c.groups * c.group_outputs));
  for (const int scale : {1, 4, 6}) HONE_RETURN_IF_ERROR(NeedFloat(node, scale));
  for (const int single : {1, 6, 7}) HONE_RETURN_IF_ERROR(NeedPerChannel(node, single, 1));
  if (!IsByte(node.Type(7).dtype)) {
    return node.UnimplementedError("the result must be u8 or i8");
  }
  if (node.Has(8)) {
    HONE_RETURN_IF_ERROR(NeedType(node, 8, DType::kI32));
    if (node.Shape(8) != std::vector<int64_t>{c.groups * c.group_outputs}) {
      return node.InvalidError(absl::StrCat("the bias is ", node.Type(8).ToText()));
    }
  }
  return Types{{node.Type(7).dtype, std::move(c.shape)}};
}

absl::Status DefineQLinearConv(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Convolution c, Check(node, kQLinearConv));
  std::string sum = WriteSum(node, writer, kQLinearConv, c);
  if (node.Has(8)) absl::StrAppend(&sum, " + ", writer.In(8, {"c"}));
  const auto scale = [&](int input) {
    return Convert(node.Type(input).dtype, DType::kF32, PerChannel(node, writer, input, "c"));
  };
  const std::string scaled =
      absl::StrCat("f32(", sum, ") * (", scale(1), " * ", scale(4), " / ", scale(6), ")");
  const std::string zero_point = IsZero(node, 7) ? "" : First(node, writer, 7);
  writer.Output(0, c.Axes(), Saturated(scaled, zero_point, node.Type(7).dtype));
  return absl::OkStatus();
}

}  // namespace

bool IsByte(DType dtype) { return dtype == DType::kU8 || dtype == DType::kI8; }

bool IsZero(const NodeView& node, int zero_point) {
  return !node.Has(zero_point) || IsEverywhere(node, zero_point, ir::Scalar(0));
}

bool HaveSameZeroPoint(const NodeView& a, const NodeView& b) {
  if (IsZero(a, 2) && IsZero(b, 2)) return true;
  return a.Has(2) && b.Has(2) && a.IsConstant(2) && b.IsConstant(2) &&
         *a.Elements(2) == *b.Elements(2);
}

absl::Span<const OperatorDef> QuantizedOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"ConvInteger", 2, 4, InferConvInteger, DefineConvInteger, "u8 and i8"},
      {"DequantizeLinear", 2, 3, InferDequantize, DefineDequantize,
       "u8, i8, u4, i4, i32 and 8-bit floats; per tensor, axis or block"},
      {"DynamicQuantizeLinear", 1, 1, InferDynamicQuantize, DefineDynamicQuantize},
      {"MatMulInteger", 2, 4, InferMatMulInteger, DefineMatMulInteger, "u8 and i8"},
      {"QLinearConv", 8, 9, InferQLinearConv, DefineQLinearConv, "u8 and i8"},
      {"QLinearMatMul", 8, 8, InferQLinearMatMul, DefineQLinearMatMul, "u8 and i8"},
      {"QuantizeLinear", 2, 3, InferQuantize, DefineQuantize,
       "to u8, i8 and 8-bit floats; per tensor, axis or block"},
  };
  return kOperators;
}

}  // namespace hone::graph

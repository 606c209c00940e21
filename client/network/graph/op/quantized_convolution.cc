#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/convolution.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "client/network/graph/op/quantized.h"
#include "common/base/status_macros.h"

// Convolutions of u8 and i8 images.
namespace hone::graph {
namespace {

using ir::DType;

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
// subtracted from the sum of products, as in quantized_matmul.cc. Padding equals the zero point of
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

absl::Span<const OperatorDef> QuantizedConvolutionOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"ConvInteger", 2, 4, InferConvInteger, DefineConvInteger, "u8 and i8"},
      {"QLinearConv", 8, 9, InferQLinearConv, DefineQLinearConv, "u8 and i8"},
  };
  return kOperators;
}

}  // namespace hone::graph

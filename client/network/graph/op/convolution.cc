#include "client/network/graph/op/convolution.h"

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "client/network/graph/op/layout.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

std::string Position(size_t dimension) { return absl::StrCat("p", dimension); }
std::string Tap(size_t dimension) { return absl::StrCat("r", dimension); }

}  // namespace

absl::StatusOr<Convolution> Convolution::Of(const NodeView& node, int x, int w) {
  const std::vector<int64_t>&image = node.Shape(x), &kernel = node.Shape(w);
  if (kernel.size() < 3 || kernel.size() != image.size()) {
    return node.InvalidError(absl::StrCat("kernels of type ", node.Type(w).ToText(),
                                          " do not fit images of type ", node.Type(x).ToText()));
  }
  const size_t dimensions = image.size() - 2;
  HONE_ASSIGN_OR_RETURN(const bool last, HasChannelsLast(node));
  const auto taps = kernel.begin() + (last ? 0 : 2);
  const std::vector<int64_t> extents(taps, taps + static_cast<int64_t>(dimensions));
  const int64_t inputs = image[last ? dimensions + 1 : 1];
  const int64_t group_inputs = kernel[last ? dimensions : 1];
  const int64_t outputs = kernel[last ? dimensions + 1 : 0];
  HONE_ASSIGN_OR_RETURN(const auto given, node.IntList("kernel_shape", extents));
  if (given != extents) return node.InvalidError("kernel_shape differs from the kernels' shape");
  HONE_ASSIGN_OR_RETURN(const int64_t groups, node.Int("group", 1));
  if (groups < 1 || outputs % groups != 0 || inputs % groups != 0 ||
      inputs / groups != group_inputs) {
    return node.InvalidError(absl::StrCat("kernels of type ", node.Type(w).ToText(), " in ", groups,
                                          " groups do not fit images of type ",
                                          node.Type(x).ToText()));
  }
  Convolution c{x, w, last, groups, group_inputs, outputs / groups, {}, {image[0], outputs}};
  HONE_ASSIGN_OR_RETURN(c.windows, Windows(node, extents));
  for (const Window& window : c.windows) c.shape.push_back(window.outputs);
  if (last) MoveChannelsLast(c.shape);
  return c;
}

std::vector<std::string> Convolution::Axes() const {
  std::vector<std::string> axes = {"n", "c"};
  for (size_t d = 0; d < windows.size(); ++d) axes.push_back(Position(d));
  if (channels_last) MoveChannelsLast(axes);
  return axes;
}

std::vector<std::string> Convolution::ImageIndices() const {
  // The group of an output channel determines its first input channel.
  const std::string group = group_outputs == 1 ? "c" : absl::StrCat("c / ", group_outputs);
  std::string channel = group_inputs == 1 ? "" : "k";
  if (groups > 1) {
    absl::StrAppend(&channel, channel.empty() ? "" : " + ", group,
                    group_inputs == 1 ? "" : absl::StrCat(" * ", group_inputs));
  }
  std::vector<std::string> indices = {"n", channel.empty() ? "0" : channel};
  for (size_t d = 0; d < windows.size(); ++d) {
    indices.push_back(windows[d].At(Position(d), Tap(d)));
  }
  if (channels_last) MoveChannelsLast(indices);
  return indices;
}

std::vector<std::string> Convolution::KernelIndices() const {
  const std::string input = group_inputs == 1 ? "0" : "k";
  std::vector<std::string> indices;
  for (size_t d = 0; d < windows.size(); ++d) indices.push_back(Tap(d));
  const std::vector<std::string> channels = {channels_last ? input : "c",
                                             channels_last ? "c" : input};
  indices.insert(channels_last ? indices.end() : indices.begin(), channels.begin(), channels.end());
  return indices;
}

std::string Convolution::Reduced(bool channels) const {
  std::vector<std::string> axes, guards;
  std::vector<int64_t> extents;
  for (size_t d = 0; d < windows.size(); ++d) {
    axes.push_back(Tap(d));
    extents.push_back(windows[d].kernel);
    windows[d].Guard(Position(d), Tap(d), guards);
  }
  if (channels && group_inputs > 1) {
    axes.insert(channels_last ? axes.end() : axes.begin(), "k");
    extents.insert(channels_last ? extents.end() : extents.begin(), group_inputs);
  }
  return Reduction("sum", axes, extents, guards);
}

namespace {

absl::StatusOr<Types> InferConv(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedFloat(node, 0));
  HONE_RETURN_IF_ERROR(NeedOneType(node, 0, node.inputs() - 1));
  HONE_ASSIGN_OR_RETURN(Convolution c, Convolution::Of(node, 0, 1));
  const int64_t channels = c.groups * c.group_outputs;
  if (node.Has(2) && node.Shape(2) != std::vector<int64_t>{channels}) {
    return node.InvalidError(
        absl::StrCat("the bias is ", node.Type(2).ToText(), " for ", channels, " channels"));
  }
  return Types{{node.Type(0).dtype, std::move(c.shape)}};
}

absl::Status DefineConv(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Convolution c, Convolution::Of(node, 0, 1));
  // Sums of short floats are rounded once, after the bias is added.
  const ir::DType dtype = node.Type(0).dtype;
  const ir::DType wide = node.Has(2) ? ir::AccumulatorOf(dtype) : dtype;
  const auto widened = [&](int input, const std::vector<std::string>& indices) {
    return Convert(dtype, wide, writer.In(input, indices));
  };
  const std::string sum =
      absl::StrCat(c.Reduced(), widened(0, c.ImageIndices()), " * ", widened(1, c.KernelIndices()));
  if (!node.Has(2)) {
    writer.Output(0, c.Axes(), sum);
    return absl::OkStatus();
  }
  const std::string stage = writer.Stage("conv", c.Axes(), c.shape, sum);
  writer.Output(
      0, c.Axes(),
      Convert(wide, dtype, absl::StrCat(Element(stage, c.Axes()), " + ", widened(2, {"c"}))));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> ConvolutionOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Conv", 2, 3, InferConv, DefineConv, "float types; 1 to 6 dimensions"},
  };
  return kOperators;
}

}  // namespace hone::graph

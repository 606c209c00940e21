#include "client/network/graph/op/convolution.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/op/element_type.h"
#include "client/network/graph/op/families.h"
#include "client/network/graph/op/formula.h"
#include "client/network/graph/op/window.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"

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
  HONE_ASSIGN_OR_RETURN(const int64_t shuffled, node.Int(kShuffledGroups, 1));
  if (shuffled < 1 || inputs % shuffled != 0) {
    return node.InvalidError(
        absl::StrCat(shuffled, " shuffled groups do not divide ", inputs, " channels"));
  }
  Convolution c{
      x, w, last, groups, group_inputs, outputs / groups, shuffled, {}, {image[0], outputs}};
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
  if (channel.empty()) channel = "0";
  if (shuffled_groups > 1) {
    channel = absl::StrCat("(", channel, ") % ", shuffled_groups, " * ",
                           groups * group_inputs / shuffled_groups, " + (", channel, ") / ",
                           shuffled_groups);
  }
  std::vector<std::string> indices = {"n", channel};
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

// The number x below `modulus` for which value * x is 1 modulo `modulus`; 0 for the modulus 1.
// REQUIRES: value and modulus have no common divisor.
int64_t Inverse(int64_t value, int64_t modulus) {
  int64_t rest = modulus, x = 0, next = 1;
  for (int64_t divisor = value % modulus; divisor > 0;) {
    const int64_t quotient = rest / divisor;
    rest = std::exchange(divisor, rest % divisor);
    x = std::exchange(next, x - quotient * next);
  }
  return x < 0 ? x + modulus : x % modulus;
}

// One dimension of a transposed convolution, y[o] = Σ x[i]·w[r] over i·s + r·d − p = o.
//
// The output is divided into phases, o = s·q + a, because only every s-th tap reads an input;
// common/operator/image_operators.cc explains this. If the stride is 1, there is one phase. With
// dilation, the taps of a phase solve r·d = a + p modulo s.
struct Phases {
  int64_t extent, kernel, stride, dilation, begin, outputs;

  int64_t rounds() const { return (outputs + stride - 1) / stride; }
  int64_t taps() const { return (kernel + step() - 1) / step(); }
  // The distance between the taps that read inputs for one output.
  int64_t step() const { return stride / Common(); }
  int64_t Common() const { return std::gcd(stride, dilation); }

  // The first tap of a phase: the r below step() with r·d = a + p modulo s.
  std::string FirstTap(const std::string& a) const {
    if (dilation == 1) return absl::StrCat("(", Offset(a, begin), ") % ", stride);
    return absl::StrCat("((", Offset(a, begin), ") / ", Common(), " * ",
                        Inverse(dilation / Common(), step()), ") % ", step());
  }
  std::string Input(const std::string& q, const std::string& a, const std::string& t) const {
    if (stride == 1) return Affine({{1, q}, {-dilation, t}}, begin);
    if (dilation == 1) {
      return absl::StrCat(q, " + (", Offset(a, begin), ") / ", stride, " - ", t);
    }
    const std::string first =
        step() == 1 ? "" : absl::StrCat(" - (", FirstTap(a), ") * ", dilation);
    return absl::StrCat(q, " + (", Offset(a, begin), first, ") / ", stride, " - ",
                        dilation / Common(), "*", t);
  }
  std::string Tap(const std::string& a, const std::string& t) const {
    return step() == 1 ? t : absl::StrCat(FirstTap(a), " + ", step(), "*", t);
  }
  void Guard(const std::string& q, const std::string& a, const std::string& t,
             std::vector<std::string>& guards) const {
    guards.push_back(absl::StrCat("0 <= ", Input(q, a, t), " < ", extent));
    if (Common() > 1) {  // other phases read no input
      guards.push_back(absl::StrCat("(", Offset(a, begin), ") % ", Common(), " == 0"));
    }
    // The last step over taps, and over outputs, may be partial.
    if (kernel % step() != 0) {
      guards.push_back(absl::StrCat("0 <= ", Tap(a, t), " < ", kernel));
    }
    if (outputs % stride != 0) {
      guards.push_back(absl::StrCat("0 <= ", Affine({{stride, q}, {1, a}}, 0), " < ", outputs));
    }
  }
};

struct Transposed {
  int64_t groups, group_inputs, group_outputs;
  std::vector<Phases> phases;
  std::vector<int64_t> shape;

  static absl::StatusOr<Transposed> Of(const NodeView& node);
};

absl::StatusOr<std::vector<Phases>> PhasesOf(const NodeView& node) {
  const std::vector<int64_t>&image = node.Shape(0), &kernel = node.Shape(1);
  const size_t n = image.size() - 2;
  HONE_ASSIGN_OR_RETURN(const auto strides, PerDimension(node, "strides", n, 1, 1));
  HONE_ASSIGN_OR_RETURN(const auto dilations, PerDimension(node, "dilations", n, 1, 1));
  HONE_ASSIGN_OR_RETURN(auto pads, PerDimension(node, "pads", 2 * n, 0, 0));
  HONE_ASSIGN_OR_RETURN(const auto more, PerDimension(node, "output_padding", n, 0, 0));
  HONE_ASSIGN_OR_RETURN(const std::string auto_pad, node.String("auto_pad", "NOTSET"));
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (auto_pad == "VALID") pads.assign(2 * n, 0);
  std::vector<int64_t> given;
  if (node.HasAttribute("output_shape")) {
    HONE_ASSIGN_OR_RETURN(given, PerDimension(node, "output_shape", n, 0, 1));
  }
  std::vector<Phases> all;
  for (size_t d = 0; d < n; ++d) {
    Phases p{image[d + 2], kernel[d + 2], strides[d], dilations[d], pads[d], 0};
    const int64_t all_outputs =
        (p.extent - 1) * p.stride + more[d] + (p.kernel - 1) * p.dilation + 1;
    p.outputs = all_outputs - pads[d] - pads[n + d];
    if (!given.empty() || same) {
      p.outputs = given.empty() ? p.extent * p.stride : given[d];
      const int64_t padding = std::max<int64_t>(0, all_outputs - p.outputs);
      p.begin = auto_pad == "SAME_UPPER" ? padding / 2 : padding - padding / 2;
    }
    if (p.outputs < 1) return node.InvalidError("the padding leaves nothing of the output");
    all.push_back(p);
  }
  return all;
}

absl::StatusOr<Transposed> Transposed::Of(const NodeView& node) {
  const std::vector<int64_t>&image = node.Shape(0), &kernel = node.Shape(1);
  HONE_ASSIGN_OR_RETURN(const int64_t groups, node.Int("group", 1));
  const bool ranks = image.size() >= 3 && image.size() == kernel.size();
  // Any number divides the channels of an empty image.
  const bool divides =
      ranks && groups >= 1 && groups <= std::max<int64_t>(image[1], 1) && image[1] % groups == 0;
  if (!divides || image[1] != kernel[0]) {
    return node.InvalidError(absl::StrCat("kernels of type ", node.Type(1).ToText(), " in ", groups,
                                          " groups do not fit images of type ",
                                          node.Type(0).ToText()));
  }
  const std::vector<int64_t> extents(kernel.begin() + 2, kernel.end());
  HONE_ASSIGN_OR_RETURN(const auto given, node.IntList("kernel_shape", extents));
  if (given != extents) return node.InvalidError("kernel_shape differs from the kernels' shape");
  Transposed t{groups, image[1] / groups, kernel[1], {}, {image[0], kernel[1] * groups}};
  HONE_ASSIGN_OR_RETURN(t.phases, PhasesOf(node));
  for (const Phases& p : t.phases) t.shape.push_back(p.outputs);
  return t;
}

absl::StatusOr<Types> InferConvTranspose(const NodeView& node) {
  HONE_RETURN_IF_ERROR(NeedFloat(node, 0));
  HONE_RETURN_IF_ERROR(NeedOneType(node, 0, node.inputs() - 1));
  HONE_ASSIGN_OR_RETURN(Transposed t, Transposed::Of(node));
  // Each strided dimension becomes two dimensions of the stage that computes the phases.
  const auto strided =
      std::count_if(t.phases.begin(), t.phases.end(), [](const Phases& p) { return p.stride > 1; });
  if (static_cast<int64_t>(t.shape.size()) + strided > ir::kMaxRank) {
    return node.UnimplementedError("strides in more than 3 dimensions are not supported");
  }
  if (node.Has(2) && node.Shape(2) != std::vector<int64_t>{t.shape[1]}) {
    return node.InvalidError(
        absl::StrCat("the bias is ", node.Type(2).ToText(), " for ", t.shape[1], " channels"));
  }
  return Types{{node.Type(0).dtype, std::move(t.shape)}};
}

absl::Status DefineConvTranspose(const NodeView& node, StageWriter& writer) {
  HONE_ASSIGN_OR_RETURN(const Transposed t, Transposed::Of(node));
  std::vector<std::string> axes = {"n", "c"}, reduced = {"k"}, guards;
  std::vector<int64_t> shape = {t.shape[0], t.shape[1]}, extents = {t.group_inputs};
  const std::string channel =
      t.groups == 1 ? "k" : absl::StrCat("k + c / ", t.group_outputs, " * ", t.group_inputs);
  std::vector<std::string> x = {"n", channel},
                           w = {channel,
                                t.groups == 1 ? "c" : absl::StrCat("c % ", t.group_outputs)},
                           y_axes = {"n", "c"}, from = {"n", "c"};
  for (size_t d = 0; d < t.phases.size(); ++d) {
    const Phases& p = t.phases[d];
    const std::string q = absl::StrCat("q", d), a = absl::StrCat("a", d), r = absl::StrCat("r", d),
                      y = absl::StrCat("p", d);
    axes.push_back(q);
    shape.push_back(p.rounds());
    y_axes.push_back(y);
    from.push_back(p.stride == 1 ? y : absl::StrCat(y, " / ", p.stride));
    if (p.stride > 1) {
      axes.push_back(a);
      shape.push_back(p.stride);
      from.push_back(absl::StrCat(y, " % ", p.stride));
    }
    reduced.push_back(r);
    extents.push_back(p.taps());
    x.push_back(p.Input(q, a, r));
    w.push_back(p.Tap(a, r));
    p.Guard(q, a, r, guards);
  }
  // Sums of short floats are rounded once, after the bias is added.
  const ir::DType dtype = node.Type(0).dtype;
  const ir::DType wide = node.Has(2) ? ir::AccumulatorOf(dtype) : dtype;
  const auto widened = [&](int input, const std::vector<std::string>& indices) {
    return Convert(dtype, wide, writer.In(input, indices));
  };
  const std::string sum = writer.Stage("phases", axes, shape,
                                       absl::StrCat(Reduction("sum", reduced, extents, guards),
                                                    widened(0, x), " * ", widened(1, w)));
  const std::string bias = node.Has(2) ? absl::StrCat(" + ", widened(2, {"c"})) : "";
  writer.Output(0, y_axes, Convert(wide, dtype, absl::StrCat(Element(sum, from), bias)));
  return absl::OkStatus();
}

}  // namespace

absl::Span<const OperatorDef> ConvolutionOperators() {
  static constexpr OperatorDef kOperators[] = {
      {"Conv", 2, 3, InferConv, DefineConv, "float types; 1 to 6 dimensions"},
      {"ConvTranspose", 2, 3, InferConvTranspose, DefineConvTranspose,
       "float types; strides in up to 3 dimensions"},
  };
  return kOperators;
}

}  // namespace hone::graph

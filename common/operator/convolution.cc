#include "common/operator/convolution.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/operator/families.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;
using ir::Index;
using ir::Shape;

namespace {

// "n h w ci" or "n ci h w", with `prefix` before each spatial dimension.
std::string Dimensions(absl::string_view first, absl::string_view channels,
                       absl::string_view prefix, absl::string_view dimensions, Layout layout) {
  std::string spatial;
  for (const char dimension : dimensions)
    absl::StrAppend(&spatial, " ", prefix, std::string(1, dimension));
  return layout == Layout::kChannelsLast ? absl::StrCat(first, spatial, " ", channels)
                                         : absl::StrCat(first, " ", channels, spatial);
}

template <typename T>
std::vector<T> Joined(std::vector<T> first, const std::vector<T>& middle, std::vector<T> last) {
  first.insert(first.end(), middle.begin(), middle.end());
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

}  // namespace

std::vector<KeyInfo> ConvolutionKeys(absl::string_view dimensions) {
  std::vector<KeyInfo> keys = {{"n", "batch"}};
  for (const char dimension : dimensions) {
    keys.push_back({std::string(1, dimension), dimension == 'h'   ? "input height"
                                               : dimension == 'w' ? "input width"
                                               : dimension == 'd' ? "input depth"
                                                                  : "input length"});
  }
  keys.push_back({"ci", "input channels"});
  keys.push_back({"co", "output channels"});
  const std::vector<KeyInfo> window = WindowKeys(dimensions);
  keys.insert(keys.end(), window.begin(), window.begin() + 3);
  keys.push_back({"dil", "dilation: the distance between neighbouring taps", 1});
  keys.push_back(
      {"groups",
       "groups of channels: output channel c reads the ci/groups input channels of its group", 1});
  keys.insert(keys.end(), window.begin() + 3, window.end());
  return keys;
}

std::vector<TensorInfo> ConvolutionInputs(absl::string_view dimensions, Layout layout) {
  std::string kernel;
  for (const char dimension : dimensions) {
    absl::StrAppend(&kernel, kernel.empty() ? "" : " ", "k",
                    dimensions.size() == 1 ? "" : std::string(1, dimension));
  }
  return {
      {"X", Dimensions("n", "ci", "", dimensions, layout)},
      {"W", layout == Layout::kChannelsLast ? kernel + " ci/groups co" : "co ci/groups " + kernel,
       /*constant=*/true}};
}

absl::StatusOr<Convolution> Convolution::Declare(OpBuilder& builder, absl::string_view op,
                                                 const Arguments& arguments,
                                                 absl::string_view dimensions, Layout layout) {
  Convolution c;
  HONE_ASSIGN_OR_RETURN(c.windows_, Windows(op, arguments, dimensions));
  c.layout_ = layout;
  c.n_ = arguments["n"];
  c.ci_ = arguments["ci"];
  c.co_ = arguments["co"];
  c.groups_ = arguments["groups"];
  for (const auto& [channels, word] : {std::pair(c.ci_, "input"), std::pair(c.co_, "output")}) {
    if (channels % c.groups_ == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(op, ": ", c.groups_, " groups do not divide ",
                                                   channels, " ", word, " channels"));
  }
  std::vector<int64_t> image, kernel;
  for (const Window& window : c.windows_) {
    image.push_back(window.extent);
    kernel.push_back(window.kernel);
  }
  const bool last = layout == Layout::kChannelsLast;
  const std::vector<int64_t> x =
      last ? Joined({c.n_}, image, {c.ci_}) : Joined({c.n_, c.ci_}, image, {});
  const std::vector<int64_t> w = last ? Joined({}, kernel, {c.ci_ / c.groups_, c.co_})
                                      : Joined({c.co_, c.ci_ / c.groups_}, kernel, {});
  c.x_ = builder.Input("X", Shape(x.begin(), x.end()));
  c.w_ = builder.Weight("W", Shape(w.begin(), w.end()));
  return c;
}

BufferId Convolution::AddStage(OpBuilder& builder, std::string name) const {
  const Axis n = builder.NewAxis("n", n_);
  std::vector<Axis> positions, taps;
  for (const Window& window : windows_) positions.push_back(window.NewPositions(builder));
  const Axis co = builder.NewAxis("co", co_);
  for (const Window& window : windows_) taps.push_back(window.NewTaps(builder));
  const Axis ci = builder.NewAxis("ci", ci_ / groups_);

  std::vector<Place> image;
  std::vector<ir::Condition> guards;
  for (size_t d = 0; d < windows_.size(); ++d) {
    const Index at = windows_[d].At(positions[d], taps[d]);
    windows_[d].Guard(at, guards);
    image.push_back(at);
  }
  // The group of an output channel determines its first input channel; with one group it is 0.
  const Index channel =
      Index::Of(ci.var) +
      builder.atoms().FloorDiv(Index::Of(co.var), co_ / groups_) * (ci_ / groups_);
  const std::vector<Place> kernel(taps.begin(), taps.end());
  const bool last = layout_ == Layout::kChannelsLast;
  const Term x = builder.At(
      x_, last ? Joined<Place>({n}, image, {channel}) : Joined<Place>({n, channel}, image, {}));
  const Term w = builder.At(
      w_, last ? Joined<Place>({}, kernel, {ci, co}) : Joined<Place>({co, ci}, kernel, {}));
  // Channels are the innermost reduction if they are contiguous, otherwise the outermost.
  return last ? builder.Sum(std::move(name), Joined({n}, positions, {co}), Joined({}, taps, {ci}),
                            x * w, std::move(guards))
              : builder.Sum(std::move(name), Joined({n, co}, positions, {}), Joined({ci}, taps, {}),
                            x * w, std::move(guards));
}

namespace {

absl::StatusOr<ir::Workload> Build(absl::string_view name, const Arguments& arguments,
                                   absl::string_view dimensions, Layout layout) {
  OpBuilder builder(std::string(name), arguments);
  HONE_ASSIGN_OR_RETURN(const Convolution convolution,
                        Convolution::Declare(builder, name, arguments, dimensions, layout));
  return builder.Build({convolution.AddStage(builder, "Y")});
}

absl::StatusOr<ir::Workload> Conv1d(const Arguments& a) {
  return Build("conv1d", a, "l", Layout::kChannelsLast);
}
absl::StatusOr<ir::Workload> Conv2d(const Arguments& a) {
  return Build("conv2d", a, "hw", Layout::kChannelsLast);
}
absl::StatusOr<ir::Workload> Conv3d(const Arguments& a) {
  return Build("conv3d", a, "dhw", Layout::kChannelsLast);
}
absl::StatusOr<ir::Workload> Conv2dNchw(const Arguments& a) {
  return Build("conv2d_nchw", a, "hw", Layout::kChannelsFirst);
}

// Inference only: the four parameters per channel of the batch normalization are folded into two.
absl::StatusOr<ir::Workload> Conv2dBnRelu(const Arguments& arguments) {
  OpBuilder b("conv2d_bn_relu", arguments);
  HONE_ASSIGN_OR_RETURN(
      const Convolution convolution,
      Convolution::Declare(b, "conv2d_bn_relu", arguments, "hw", Layout::kChannelsLast));
  const Shape channels = {arguments["co"]};
  const BufferId bias = b.Weight("Bias", channels), scale = b.Weight("Scale", channels),
                 offset = b.Weight("Offset", channels);
  const BufferId sum = convolution.AddStage(b, "Conv");
  const std::vector<Axis> axes = b.AxesOf(sum, {"n", "h", "w", "co"});
  const Axis co = axes.back();
  return b.Build({b.Map(
      "Y", axes,
      Max((b.At(sum, axes) + b.At(bias, {co})) * b.At(scale, {co}) + b.At(offset, {co}), 0))});
}

OperatorInfo ConvolutionInfo(std::string name, std::string meaning, absl::string_view dimensions,
                             Layout layout,
                             absl::StatusOr<ir::Workload> (*build)(const Arguments&)) {
  return {.name = std::move(name),
          .meaning = std::move(meaning),
          .keys = ConvolutionKeys(dimensions),
          .inputs = ConvolutionInputs(dimensions, layout),
          .outputs = {{"Y", Dimensions("n", "co", "o", dimensions, layout)}},
          .build = build};
}

}  // namespace

std::vector<OperatorInfo> ConvolutionOperators() {
  OperatorInfo bn_relu = ConvolutionInfo(
      "conv2d_bn_relu", "Y = max((conv2d(X, W) + Bias) * Scale + Offset, 0), per output channel",
      "hw", Layout::kChannelsLast, Conv2dBnRelu);
  for (const char* name : {"Bias", "Scale", "Offset"})
    bn_relu.inputs.push_back({name, "co", /*constant=*/true});
  return {
      ConvolutionInfo(
          "conv1d",
          "Y[n, ol, co] = X[n, l, ci] * W[k, ci/groups, co]; ol = (l + 2p - (k-1)*dil - 1) / s + 1",
          "l", Layout::kChannelsLast, Conv1d),
      ConvolutionInfo(
          "conv2d",
          "Y[n, oh, ow, co] = X[n, h, w, ci] * W[kh, kw, ci/groups, co]; oh = (h + 2ph - "
          "(kh-1)*dil - 1) / sh + 1",
          "hw", Layout::kChannelsLast, Conv2d),
      std::move(bn_relu),
      ConvolutionInfo(
          "conv2d_nchw",
          "conv2d with channels first: Y[n, co, oh, ow] = X[n, ci, h, w] * W[co, ci/groups, kh, "
          "kw]",
          "hw", Layout::kChannelsFirst, Conv2dNchw),
      ConvolutionInfo(
          "conv3d",
          "Y[n, od, oh, ow, co] = X[n, d, h, w, ci] * W[kd, kh, kw, ci/groups, co]; od as oh of "
          "conv2d",
          "dhw", Layout::kChannelsLast, Conv3d),
  };
}

}  // namespace hone::op

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/operator/families.h"
#include "common/operator/formula.h"
#include "common/operator/window.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;
using ir::Index;
using ir::Reducer;

namespace {

// The windows of a pooling operator. Each must contain an element of the image, because a maximum
// or mean of no elements is undefined; ONNX Runtime has the same rule. InvalidArgument: as for
// Windows, or the padding is not smaller than the kernel.
absl::StatusOr<std::vector<Window>> PoolingWindows(absl::string_view op,
                                                   const Arguments& arguments) {
  HONE_ASSIGN_OR_RETURN(std::vector<Window> windows, Windows(op, arguments, "hw"));
  for (const Window& w : windows) {
    if (w.padding < w.kernel) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        op, ": padding ", w.padding, " must be smaller than the kernel (", w.kernel, ")"));
  }
  return windows;
}

// The axes and guards of one stage that reduces over windows.
struct Pool {
  Pool(OpBuilder& b, const std::vector<Window>& windows)
      : oh(windows[0].NewPositions(b)),
        ow(windows[1].NewPositions(b)),
        r(windows[0].NewTaps(b)),
        s(windows[1].NewTaps(b)),
        h(windows[0].At(oh, r)),
        w(windows[1].At(ow, s)) {
    windows[0].Guard(h, guards);
    windows[1].Guard(w, guards);
  }
  Axis oh, ow, r, s;
  Index h, w;
  std::vector<ir::Condition> guards;
};

BufferId AddPool(OpBuilder& b, std::string name, const Arguments& arguments,
                 const std::vector<Window>& windows, Reducer reducer) {
  const BufferId x = b.Input("X", {arguments["n"], arguments["h"], arguments["w"], arguments["c"]});
  const Pool pool(b, windows);
  const Axis n = b.NewAxis("n", arguments["n"]), c = b.NewAxis("c", arguments["c"]);
  return b.Reduce(std::move(name), {n, pool.oh, pool.ow, c}, reducer, {pool.r, pool.s},
                  b.At(x, {n, pool.h, pool.w, c}), pool.guards);
}

// The guard excludes padding from the maximum.
absl::StatusOr<ir::Workload> MaxPool2d(const Arguments& arguments) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Window> windows, PoolingWindows("max_pool2d", arguments));
  OpBuilder b("max_pool2d", arguments);
  return b.Build({AddPool(b, "Y", arguments, windows, Reducer::kMax)});
}

absl::StatusOr<ir::Workload> AvgPool2d(const Arguments& arguments) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Window> windows, PoolingWindows("avg_pool2d", arguments));
  OpBuilder b("avg_pool2d", arguments);
  const BufferId sum = AddPool(b, "Sum", arguments, windows, Reducer::kSum);
  if (arguments["pad_counts"] == 1 || (windows[0].padding == 0 && windows[1].padding == 0)) {
    const std::vector<Axis> axes = b.AxesOf(sum, {"n", "h", "w", "c"});
    const double taps =
        static_cast<double>(windows[0].kernel) * static_cast<double>(windows[1].kernel);
    return b.Build({b.Map("Y", axes, b.At(sum, axes) * (1 / taps))});
  }
  // Counts the taps inside the image once for all channels.
  const Pool pool(b, windows);
  const BufferId count =
      b.Sum("Count", {pool.oh, pool.ow}, {pool.r, pool.s}, b.Number(1), pool.guards);
  const std::vector<Axis> axes = b.AxesOf(sum, {"n", "h", "w", "c"});
  return b.Build({b.Map("Y", axes, b.At(sum, axes) / b.At(count, {axes[1], axes[2]}))});
}

absl::StatusOr<ir::Workload> GlobalAvgPool(const Arguments& arguments) {
  OpBuilder b("global_avg_pool", arguments);
  const int64_t n = arguments["n"], h = arguments["h"], w = arguments["w"], c = arguments["c"];
  const BufferId x = b.Input("X", {n, h, w, c});
  const Axis sn = b.NewAxis("n", n), sc = b.NewAxis("c", c), sh = b.NewAxis("h", h),
             sw = b.NewAxis("w", w);
  const BufferId sum = b.Sum("Sum", {sn, sc}, {sh, sw}, b.At(x, {sn, sh, sw, sc}));
  const std::vector<Axis> axes = b.AxesOf(sum, {"n", "c"});
  return b.Build({b.Map(
      "Y", axes, b.At(sum, axes) * (1 / (static_cast<double>(h) * static_cast<double>(w))))});
}

std::vector<KeyInfo> ImageKeys() {
  return {{"n", "batch"}, {"h", "input height"}, {"w", "input width"}, {"c", "channels"}};
}

OperatorInfo PoolingInfo(std::string name, std::string meaning, Types types,
                         absl::StatusOr<ir::Workload> (*build)(const Arguments&)) {
  OperatorInfo info{.name = std::move(name),
                    .meaning = std::move(meaning),
                    .keys = ImageKeys(),
                    .inputs = {{"X", "n h w c"}},
                    .outputs = {{"Y", "n oh ow c"}},
                    .types = types,
                    .build = build};
  const std::vector<KeyInfo> window = WindowKeys("hw", /*stride_is_kernel=*/true);
  info.keys.insert(info.keys.end(), window.begin(), window.end());
  return info;
}

}  // namespace

std::vector<OperatorInfo> PoolingOperators() {
  OperatorInfo avg =
      PoolingInfo("avg_pool2d",
                  "Y[n, oh, ow, c] = mean of X over kh x kw windows; oh = (h + 2ph - kh) / sh + 1",
                  Types::kFloats, AvgPool2d);
  avg.keys.push_back(
      {.name = "pad_counts",
       .meaning = "1: padding counts as zeros, 0: the mean is over the elements inside the image",
       .default_value = 1,
       .minimum = 0,
       .maximum = 1});
  avg.note = "The padding must be smaller than the kernel, as ONNX Runtime requires.";
  OperatorInfo max = PoolingInfo(
      "max_pool2d",
      "Y[n, oh, ow, c] = maximum of X over kh x kw windows; oh = (h + 2ph - kh) / sh + 1",
      Types::kNumbers, MaxPool2d);
  max.note =
      "NaN elements are ignored, as numpy.fmax does; Y is -inf where all elements of a window are "
      "NaN. Padding is ignored. It must be smaller than the kernel, as ONNX Runtime requires.";
  OperatorInfo global{.name = "global_avg_pool",
                      .meaning = "Y[n, c] = mean of X[n, h, w, c] over h and w",
                      .keys = ImageKeys(),
                      .inputs = {{"X", "n h w c"}},
                      .outputs = {{"Y", "n c"}},
                      .types = Types::kFloats,
                      .build = GlobalAvgPool};
  return {std::move(avg), std::move(global), std::move(max)};
}

}  // namespace hone::op

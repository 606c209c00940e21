#include "common/base/status_macros.h"
#include "common/operator/families.h"
#include "common/operator/formula.h"
#include "common/operator/window.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;
using ir::Index;

namespace {

absl::StatusOr<ir::Workload> DepthwiseConv2d(const Arguments& arguments) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Window> windows,
                        Windows("depthwise_conv2d", arguments, "hw"));
  const Window &rows = windows[0], &columns = windows[1];
  OpBuilder b("depthwise_conv2d", arguments);
  const int64_t n = arguments["n"], c = arguments["c"];
  const BufferId x = b.Input("X", {n, rows.extent, columns.extent, c});
  const BufferId weight = b.Weight("W", {rows.kernel, columns.kernel, c});
  const Axis an = b.NewAxis("n", n), ah = rows.NewPositions(b), aw = columns.NewPositions(b),
             ac = b.NewAxis("c", c);
  const Axis r = rows.NewTaps(b), s = columns.NewTaps(b);
  const Index h = rows.At(ah, r), w = columns.At(aw, s);
  std::vector<ir::Condition> guards;
  rows.Guard(h, guards);
  columns.Guard(w, guards);
  return b.Build({b.Sum("Y", {an, ah, aw, ac}, {r, s},
                        b.At(x, {an, h, w, ac}) * b.At(weight, {r, s, ac}), std::move(guards))});
}

}  // namespace

std::vector<OperatorInfo> DepthwiseOperators() {
  std::vector<KeyInfo> keys = {
      {"n", "batch"}, {"h", "input height"}, {"w", "input width"}, {"c", "channels"}};
  const std::vector<KeyInfo> window = WindowKeys("hw");
  keys.insert(keys.end(), window.begin(), window.begin() + 3);
  keys.push_back({"dil", "dilation: the distance between neighbouring taps", 1});
  keys.insert(keys.end(), window.begin() + 3, window.end());
  return {{.name = "depthwise_conv2d",
           .meaning = "Y[n, oh, ow, c] = X[n, h, w, c] * W[kh, kw, c], each channel separately; oh "
                      "as of conv2d",
           .keys = std::move(keys),
           .inputs = {{"X", "n h w c"}, {"W", "kh kw c", /*constant=*/true}},
           .outputs = {{"Y", "n oh ow c"}},
           .build = DepthwiseConv2d}};
}

}  // namespace hone::op

#include "common/base/status_macros.h"
#include "common/operator/families.h"
#include "common/operator/formula.h"
#include "common/operator/window.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;
using ir::Index;

namespace {

// A convolution whose elements are cap × cap matrices, multiplied where conv2d multiplies numbers
// (Hinton et al., 2018, in Ansor's form).
absl::StatusOr<ir::Workload> CapsuleConv2d(const Arguments& arguments) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Window> windows,
                        Windows("capsule_conv2d", arguments, "hw"));
  const Window &rows = windows[0], &columns = windows[1];
  OpBuilder b("capsule_conv2d", arguments);
  const int64_t n = arguments["n"], ci = arguments["ci"], co = arguments["co"],
                cap = arguments["cap"];
  const BufferId x = b.Input("X", {n, rows.extent, columns.extent, cap, cap, ci});
  const BufferId weight = b.Weight("W", {rows.kernel, columns.kernel, cap, cap, ci, co});
  const Axis an = b.NewAxis("n", n), ah = rows.NewPositions(b), aw = columns.NewPositions(b);
  const Axis i = b.NewAxis("i", cap), j = b.NewAxis("j", cap), aco = b.NewAxis("co", co);
  const Axis r = rows.NewTaps(b), s = columns.NewTaps(b), k = b.NewAxis("k", cap),
             aci = b.NewAxis("ci", ci);
  const Index h = rows.At(ah, r), w = columns.At(aw, s);
  std::vector<ir::Condition> guards;
  rows.Guard(h, guards);
  columns.Guard(w, guards);
  return b.Build({b.Sum("Y", {an, ah, aw, i, j, aco}, {r, s, k, aci},
                        b.At(x, {an, h, w, i, k, aci}) * b.At(weight, {r, s, k, j, aci, aco}),
                        std::move(guards))});
}

}  // namespace

std::vector<OperatorInfo> CapsuleOperators() {
  std::vector<KeyInfo> keys = {{"n", "batch"},
                               {"h", "input height"},
                               {"w", "input width"},
                               {"ci", "input channels"},
                               {"co", "output channels"}};
  const std::vector<KeyInfo> window = WindowKeys("hw");
  keys.insert(keys.end(), window.begin(), window.begin() + 3);
  keys.push_back({"cap", "rows and columns of the matrix at each point", 4});
  keys.insert(keys.end(), window.begin() + 3, window.end());
  return {{.name = "capsule_conv2d",
           .meaning = "conv2d of matrices: Y[n, oh, ow, i, j, co] = X[n, h, w, i, l, ci] * W[kh, "
                      "kw, l, j, ci, co]; oh and ow as in conv2d",
           .keys = std::move(keys),
           .inputs = {{"X", "n h w cap cap ci"}, {"W", "kh kw cap cap ci co", /*constant=*/true}},
           .outputs = {{"Y", "n oh ow cap cap co"}},
           .build = CapsuleConv2d}};
}

}  // namespace hone::op

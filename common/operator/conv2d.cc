#include "absl/strings/str_cat.h"
#include "common/operator/operator.h"

namespace hone::op {

using ir::Condition;
using ir::Index;
using ir::Op;
using ir::Reducer;

absl::StatusOr<ir::Workload> Conv2d(const Arguments& arguments) {
  const int64_t n = arguments["n"], h = arguments["h"], w = arguments["w"], ci = arguments["ci"], co = arguments["co"];
  const int64_t k = arguments["k"], s = arguments["s"], p = arguments["p"];
  if (h + 2 * p < k || w + 2 * p < k) {
    return absl::InvalidArgumentError(
        absl::StrCat("conv2d: a kernel of ", k, "x", k, " does not fit into the padded input of ", h + 2 * p, "x", w + 2 * p));
  }
  if (p >= k) {
    return absl::InvalidArgumentError(absl::StrCat("conv2d: padding ", p, " must be smaller than the kernel (", k, ")"));
  }
  const int64_t oh = (h + 2 * p - k) / s + 1, ow = (w + 2 * p - k) / s + 1;
  ir::WorkloadBuilder builder("conv2d");
  const auto x = builder.Input("X", arguments.dtype, {n, h, w, ci});
  const auto weight = builder.Input("W", arguments.dtype, {k, k, ci, co}, /*constant=*/true);
  const auto an = builder.NewAxis("n", n), ah = builder.NewAxis("h", oh), aw = builder.NewAxis("w", ow);
  const auto aco = builder.NewAxis("co", co);
  const auto ar = builder.NewAxis("r", k), as = builder.NewAxis("s", k), aci = builder.NewAxis("ci", ci);
  const Index row = Index::Of(ah.var, s) + Index::Of(ar.var) + -p;
  const Index column = Index::Of(aw.var, s) + Index::Of(as.var) + -p;
  std::vector<Condition> guards;
  if (p > 0) guards = {{row, h}, {column, w}};
  const auto product = builder.pool().Binary(
      Op::kMul, builder.Load(x, {Index::Of(an.var), row, column, Index::Of(aci.var)}),
      builder.Load(weight, {Index::Of(ar.var), Index::Of(as.var), Index::Of(aci.var), Index::Of(aco.var)}));
  builder.Output(builder.Stage("Y", {an, ah, aw, aco}, Reducer::kSum, {ar, as, aci}, std::move(guards), product));
  return std::move(builder).Build();
}

}  // namespace hone::op

#include "common/schedule/rewrite/conv2d_form.h"

#include "absl/algorithm/container.h"

namespace hone::schedule {

using ir::AtomId;
using ir::Axis;
using ir::Index;

namespace {

absl::Status NotConv2d(absl::string_view why) { return absl::FailedPreconditionError(why); }

// Matches index = axis + spatial + constant, where `axis` is one of `reduce`, and returns that
// axis.
absl::StatusOr<Axis> Window(const Index& index, const Axis& spatial,
                            const std::vector<Axis>& reduce) {
  if (index.CoeffOf(spatial.var) != 1) return NotConv2d("the stride is not 1");
  const Index rest = index - Index::Of(spatial.var) + -index.constant();
  for (const Axis& axis : reduce) {
    if (rest.SingleAtom() == axis.var) return axis;
    if (rest.CoeffOf(axis.var) > 1) return NotConv2d("the kernel is dilated");
  }
  return NotConv2d("the input's row and column are not an output's plus a kernel's");
}

}  // namespace

absl::StatusOr<Conv2dForm> MatchConv2d(const ir::Workload& workload, const ir::Stage& stage) {
  if (stage.reducer != ir::Reducer::kSum || stage.spatial.size() != 4 || stage.reduce.size() != 3) {
    return NotConv2d("not a sum over three axes for an output of four (NHWC)");
  }
  const ir::Expr product = workload.pool[stage.values[0]];
  if (product.op != ir::Op::kMul) return NotConv2d("the sum is not of products");
  for (const bool swapped : {false, true}) {
    const ir::Expr x = workload.pool[swapped ? product.b : product.a],
                   w = workload.pool[swapped ? product.a : product.b];
    if (x.op != ir::Op::kLoad || w.op != ir::Op::kLoad || x.gathered >= 0 || w.gathered >= 0)
      return NotConv2d("the factors are not plain elements of two tensors");
    const ir::IndexList xi = workload.pool.IndicesOf(x), wi = workload.pool.IndicesOf(w);
    if (xi.size() != 4 || wi.size() != 4)
      return NotConv2d("the factors are not elements of tensors with four axes");
    Conv2dForm form{.n = stage.spatial[0],
                    .h = stage.spatial[1],
                    .w = stage.spatial[2],
                    .co = stage.spatial[3],
                    .input = x.buffer,
                    .weight = w.buffer};
    if (wi[3].SingleAtom() != form.co.var || xi[0].SingleAtom() != form.n.var) {
      if (swapped) return NotConv2d("the input is not NHWC or the weights are not r, s, ci, co");
      continue;
    }
    const auto r = Window(xi[1], form.h, stage.reduce), s = Window(xi[2], form.w, stage.reduce);
    if (!r.ok()) return r.status();
    if (!s.ok()) return s.status();
    form.r = *r;
    form.s = *s;
    const auto ci =
        absl::c_find_if(stage.reduce, [&](const Axis& a) { return a.var == xi[3].SingleAtom(); });
    if (ci == stage.reduce.end() || form.r.var == form.s.var || wi[0].SingleAtom() != form.r.var ||
        wi[1].SingleAtom() != form.s.var || wi[2].SingleAtom() != ci->var) {
      return NotConv2d("the input is not NHWC or the weights are not r, s, ci, co");
    }
    form.ci = *ci;
    form.height = workload.tensors[form.input].shape[1];
    form.width = workload.tensors[form.input].shape[2];
    form.top = xi[1].constant();
    form.left = xi[2].constant();
    for (const ir::Condition& guard : stage.guards) {
      const bool row = guard.index == xi[1] && guard.extent == form.height;
      const bool column = guard.index == xi[2] && guard.extent == form.width;
      if (!row && !column) return NotConv2d("a guard is not the input's edge");
    }
    return form;
  }
  return NotConv2d("the factors are not elements of two tensors");
}

}  // namespace hone::schedule

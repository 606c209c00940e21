
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/schedule/rewrite/edit.h"
#include "common/schedule/rewrite/rewrites.h"

namespace hone::schedule {

using ir::AtomId;
using ir::Axis;
using ir::ExprId;
using ir::Index;
using ir::Op;

namespace {

absl::Status NotIm2col(absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("im2col: ", why));
}

bool Contains(const std::vector<Axis>& axes, AtomId var) {
  return absl::c_any_of(axes, [&](const Axis& axis) { return axis.var == var; });
}

// Whether some index combines an axis of the output with a reduced one, as a sliding window does.
bool IsWindow(const ir::Workload& workload, const ir::Stage& stage, const ir::IndexList& indices) {
  return absl::c_any_of(indices, [&](const Index& index) {
    bool spatial = false, reduced = false;
    workload.atoms.VisitVars(
        index, [&](AtomId var) { (Contains(stage.reduce, var) ? reduced : spatial) = true; });
    return spatial && reduced;
  });
}

// Collects the factors of a product, looking through casts.
void Factors(const ir::ExprPool& pool, ExprId id, std::vector<ExprId>& factors) {
  const ir::Expr& expr = pool[id];
  if (expr.op == Op::kMul) {
    Factors(pool, expr.a, factors);
    Factors(pool, expr.b, factors);
  } else if (expr.op == Op::kCast) {
    Factors(pool, expr.a, factors);
  } else {
    factors.push_back(id);
  }
}

}  // namespace

absl::StatusOr<ir::Workload> Im2col(const ir::Workload& workload, int position,
                                    absl::Span<const int64_t>) {
  ir::Workload w = workload;
  const ir::Stage stage = w.stages[position];
  if (stage.reducer != ir::Reducer::kSum) return NotIm2col("the stage is not a sum");
  std::vector<ExprId> factors;
  Factors(w.pool, stage.values[0], factors);
  ExprId window = ir::kNoExpr;
  for (ExprId factor : factors) {
    const ir::Expr& read = w.pool[factor];
    if (read.op != Op::kLoad || read.gathered >= 0 || !IsWindow(w, stage, w.pool.IndicesOf(read)))
      continue;
    if (window != ir::kNoExpr) return NotIm2col("two factors are read through windows");
    window = factor;
  }
  if (window == ir::kNoExpr)
    return NotIm2col(
        "no factor is read through a window: an index of an output's axis and a reduced one");
  const ir::Expr load = w.pool[window];
  const ir::IndexList indices = w.pool.IndicesOf(load);

  // The patches have the axes that the window depends on.
  std::vector<Axis> axes;
  std::vector<std::pair<AtomId, Index>> renamed;
  ir::IndexList place;
  for (const auto* list : {&stage.spatial, &stage.reduce}) {
    for (const Axis& axis : *list) {
      if (absl::c_none_of(indices,
                          [&](const Index& index) { return w.atoms.DependsOn(index, axis.var); }))
        continue;
      axes.push_back(NewAxis(w, std::string(w.atoms[axis.var].name), axis.extent));
      renamed.emplace_back(axis.var, Index::Of(axes.back().var));
      place.push_back(Index::Of(axis.var));
    }
  }
  if (axes.size() > ir::kMaxRank)
    return NotIm2col(
        absl::StrCat("the patches would have ", axes.size(), " axes; at most ", ir::kMaxRank));
  const auto rename = [&](const Index& index) { return w.atoms.Substitute(index, renamed); };
  std::vector<ir::Condition> moved, kept;
  for (const ir::Condition& guard : stage.guards) {
    bool own = true;
    w.atoms.VisitVars(guard.index, [&](AtomId var) {
      own &= absl::c_any_of(renamed, [&](const auto& pair) { return pair.first == var; });
    });
    if (own) {
      moved.push_back({rename(guard.index), guard.extent});
    } else {
      kept.push_back(guard);
    }
  }
  ir::IndexList source;
  for (const Index& index : indices) source.push_back(rename(index));
  const ExprId element = LoadOf(w, load.buffer, source);
  // A guard needs a reduction. Reduce over a single point; the neutral element is the padding.
  std::vector<Axis> reduce;
  if (!moved.empty()) reduce = {NewAxis(w, "z", 1)};
  const ir::BufferId patches =
      InsertStage(w, position, absl::StrCat(w.tensors[stage.tensors[0]].name, "_p"), axes,
                  moved.empty() ? ir::Reducer::kNone : ir::Reducer::kSum, reduce, moved, element);
  const ExprId read = LoadOf(w, patches, place);
  ir::Stage& product = w.stages[position];
  product.guards = kept;
  product.values[0] = w.pool.Rewrite(
      product.values[0],
      [&](const ir::Expr& expr) {
        const bool same =
            expr.buffer == load.buffer && expr.gathered < 0 && w.pool.IndicesOf(expr) == indices;
        return same ? read : ir::kNoExpr;
      },
      [](const Index& index) { return index; });
  ir::Workload result = Renumbered(std::move(w));
  if (const absl::Status valid = result.Validate(); !valid.ok()) return NotIm2col(valid.message());
  return result;
}

}  // namespace hone::schedule


#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/schedule/rewrite/edit.h"
#include "common/schedule/rewrite/rewrites.h"

namespace hone::schedule {

using ir::AtomId;
using ir::Axis;
using ir::Index;

absl::StatusOr<ir::Workload> SplitK(const ir::Workload& workload, int position,
                                    absl::Span<const int64_t> numbers) {
  ir::Workload w = workload;
  const ir::Stage stage = w.stages[position];
  if (stage.reduce.empty())
    return absl::FailedPreconditionError("split_k: the stage does not reduce");
  const auto longest = absl::c_max_element(
      stage.reduce, [](const Axis& a, const Axis& b) { return a.extent < b.extent; });
  const int64_t parts = numbers[0];
  if (parts < 2 || parts > longest->extent) {
    return absl::InvalidArgumentError(absl::StrCat("split_k: ", parts, " parts of ",
                                                   longest->extent, " terms; 2 to ",
                                                   longest->extent, " are possible"));
  }
  const int64_t chunk = ir::CeilDivInt(longest->extent, parts);

  // The partial reductions: a copy of the stage with new axes and the parts as the outer axis.
  std::vector<std::pair<AtomId, Index>> renamed;
  ir::Stage partial{.reducer = stage.reducer};
  partial.spatial = {NewAxis(w, "part", parts)};
  const Index part = Index::Of(partial.spatial[0].var);
  for (const auto* list : {&stage.spatial, &stage.reduce}) {
    for (const Axis& axis : *list) {
      const bool cut = axis.var == longest->var;
      const Axis copy = NewAxis(w, std::string(w.atoms[axis.var].name), cut ? chunk : axis.extent);
      (list == &stage.spatial ? partial.spatial : partial.reduce).push_back(copy);
      renamed.emplace_back(axis.var,
                           cut ? part * chunk + Index::Of(copy.var) : Index::Of(copy.var));
    }
  }
  const auto rename = [&](const Index& index) { return w.atoms.Substitute(index, renamed); };
  for (const ir::Condition& guard : stage.guards)
    partial.guards.push_back({rename(guard.index), guard.extent});
  if (parts * chunk > longest->extent)
    partial.guards.push_back({rename(Index::Of(longest->var)), longest->extent});
  ir::IndexList place = {Index()};
  for (const Axis& axis : stage.spatial) place.push_back(Index::Of(axis.var));
  const Axis sum = NewAxis(w, "part", parts);
  place[0] = Index::Of(sum.var);
  ir::Stage whole{.tensors = stage.tensors,
                  .spatial = stage.spatial,
                  .reduce = {sum},
                  .reducer = stage.reducer};
  const std::string name = w.tensors[stage.tensors[0]].name;
  const ir::DType dtype = w.tensors[stage.tensors[0]].dtype;
  const bool widens = ir::AccumulatorOf(stage.reducer, dtype) != dtype;
  for (size_t c = 0; c < stage.values.size(); ++c) {
    const ir::Tensor& tensor = w.tensors[stage.tensors[c]];
    partial.tensors.push_back(NewTensor(w, absl::StrCat(tensor.name, "_part"),
                                        ir::AccumulatorOf(stage.reducer, tensor.dtype),
                                        partial.spatial));
    const ir::ExprId value =
        w.pool.Rewrite(stage.values[c], [](const ir::Expr&) { return ir::kNoExpr; }, rename);
    partial.values.push_back(widens ? w.pool.Widened(value) : value);
    whole.values.push_back(LoadOf(w, partial.tensors.back(), place));
  }
  if (widens) {
    // The sum of the parts is also f32 and is rounded once.
    std::vector<Axis> axes;
    ir::IndexList rounded_place;
    for (const Axis& axis : stage.spatial) {
      axes.push_back(NewAxis(w, std::string(w.atoms[axis.var].name), axis.extent));
      rounded_place.push_back(Index::Of(axes.back().var));
    }
    whole.tensors = {NewTensor(w, absl::StrCat(name, "_sum"), ir::AccumulatorOf(dtype), axes)};
    const ir::ExprId total = LoadOf(w, whole.tensors[0], rounded_place);
    const ir::Stage rounded{.tensors = stage.tensors,
                            .spatial = std::move(axes),
                            .values = {w.pool.Cast(dtype, total)}};
    w.stages.insert(w.stages.begin() + position + 1, rounded);
  }
  w.stages[position] = std::move(whole);
  w.stages.insert(w.stages.begin() + position, std::move(partial));
  ir::Workload result = Renumbered(std::move(w));
  if (const absl::Status valid = result.Validate(); !valid.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("split_k: the last part would be shorter than the others: ", valid.message()));
  }
  return result;
}

}  // namespace hone::schedule

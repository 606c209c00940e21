#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/operator/families.h"
#include "common/operator/formula.h"

namespace hone::op {

using ir::Axis;
using ir::BufferId;
using ir::Reducer;

namespace {

// The input of all reductions: X[m, n] with the kept axis (i) and the reduced axis (k).
struct Operand {
  Operand(OpBuilder& b, const Arguments& arguments) {
    const int64_t m = arguments["m"], n = arguments["n"];
    const bool rows = arguments["axis"] == 1;
    x = b.Input("X", {m, n});
    kept = b.NewAxis("i", rows ? m : n);
    reduced = b.NewAxis("k", rows ? n : m);
    value.push_back(rows ? b.At(x, {kept, reduced}) : b.At(x, {reduced, kept}));
  }
  BufferId x;
  Axis kept, reduced;
  std::vector<Term> value;
};

absl::StatusOr<ir::Workload> Reduce(absl::string_view name, const Arguments& arguments,
                                    Reducer reducer) {
  OpBuilder b(std::string(name), arguments);
  const Operand operand(b, arguments);
  return b.Build({b.Reduce("Y", {operand.kept}, reducer, {operand.reduced}, operand.value[0])});
}

absl::StatusOr<ir::Workload> ReduceSum(const Arguments& a) {
  return Reduce("reduce_sum", a, Reducer::kSum);
}
absl::StatusOr<ir::Workload> ReduceMax(const Arguments& a) {
  return Reduce("reduce_max", a, Reducer::kMax);
}

absl::StatusOr<ir::Workload> ReduceMean(const Arguments& arguments) {
  OpBuilder b("reduce_mean", arguments);
  const Operand operand(b, arguments);
  const BufferId sum = b.Sum("Sum", {operand.kept}, {operand.reduced}, operand.value[0]);
  const Axis i = b.NewAxis("i", operand.kept.extent);
  return b.Build(
      {b.Map("Y", {i}, b.At(sum, {i}) * (1 / static_cast<double>(operand.reduced.extent)))});
}

absl::StatusOr<ir::Workload> ArgMax(const Arguments& arguments) {
  OpBuilder b("argmax", arguments);
  const Operand operand(b, arguments);
  if (operand.reduced.extent > int64_t{1} << 31) {
    return absl::InvalidArgumentError(
        absl::StrCat("argmax: an index below ", operand.reduced.extent, " does not fit into i32"));
  }
  // The builder's stages have one component, so the second one is added here.
  HONE_ASSIGN_OR_RETURN(
      ir::Workload workload,
      b.Build({b.Reduce("Y", {operand.kept}, Reducer::kMax, {operand.reduced}, operand.value[0])}));
  ir::Stage& stage = workload.stages[0];
  stage.reducer = Reducer::kArgMax;
  stage.tensors.push_back(static_cast<BufferId>(workload.tensors.size()));
  stage.values.push_back(workload.pool.Cast(
      ir::DType::kI32, workload.pool.OfIndex(ir::Index::Of(operand.reduced.var))));
  workload.tensors.push_back({.name = "Index",
                              .dtype = ir::DType::kI32,
                              .shape = {operand.kept.extent},
                              .output = true,
                              .stage = 0});
  HONE_RETURN_IF_ERROR(workload.Validate());
  return workload;
}

OperatorInfo ReductionInfo(std::string name, std::string what, Types types,
                           absl::StatusOr<ir::Workload> (*build)(const Arguments&)) {
  return {.name = std::move(name),
          .meaning = absl::StrCat("Y[m] = ", what,
                                  " of X[m, n] over each row; axis=0: Y[n], over each column"),
          .keys = {{"m", "rows"},
                   {"n", "columns"},
                   {.name = "axis",
                    .meaning = "dimension that is reduced: 1 reduces each row, 0 each column",
                    .default_value = 1,
                    .minimum = 0,
                    .maximum = 1}},
          .inputs = {{"X", "m n"}},
          .outputs = {{"Y", "m"}},
          .types = types,
          .build = build};
}

}  // namespace

std::vector<OperatorInfo> ReductionOperators() {
  OperatorInfo argmax = ReductionInfo("argmax", "maximum", Types::kNumbers, ArgMax);
  argmax.meaning += "; Index is its position, the lowest if several are equal";
  argmax.note =
      "NaN elements are ignored, as numpy.nanargmax does. Y is -inf and Index is -1 where all "
      "elements of a row are NaN.";
  argmax.outputs.push_back({"Index", "m", /*constant=*/false, "i32"});
  OperatorInfo reduce_max = ReductionInfo("reduce_max", "maximum", Types::kNumbers, ReduceMax);
  reduce_max.note =
      "NaN elements are ignored, as numpy.fmax.reduce does. Y is -inf where all elements of a row "
      "are NaN.";
  return {
      std::move(argmax),
      std::move(reduce_max),
      ReductionInfo("reduce_mean", "mean", Types::kFloats, ReduceMean),
      ReductionInfo("reduce_sum", "sum", Types::kNumbers, ReduceSum),
  };
}

}  // namespace hone::op

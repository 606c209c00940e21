#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/ir/dtype.h"
#include "common/schedule/rewrite/edit.h"
#include "common/schedule/rewrite/rewrites.h"

namespace hone::schedule {

using ir::Axis;
using ir::BufferId;
using ir::DType;
using ir::ExprId;
using ir::Index;
using ir::Op;

namespace {

// Adds a stage that rounds all elements of a tensor. Returns its tensor.
BufferId Rounded(ir::Workload& w, int& position, BufferId tensor) {
  static constexpr absl::string_view kNames[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  static_assert(std::size(kNames) == ir::kMaxRank);
  std::vector<Axis> axes;
  ir::IndexList place;
  for (size_t d = 0; d < w.tensors[tensor].shape.size(); ++d) {
    axes.push_back(NewAxis(w, kNames[d], w.tensors[tensor].shape[d]));
    place.push_back(Index::Of(axes.back().var));
  }
  const std::string name = absl::StrCat(w.tensors[tensor].name, "_bf16");
  const ExprId value = w.pool.Cast(DType::kBF16, LoadOf(w, tensor, place));
  return InsertStage(w, position, name, std::move(axes), ir::Reducer::kNone, {}, {}, value);
}

}  // namespace

absl::StatusOr<ir::Workload> Bf16(const ir::Workload& workload, int position,
                                  absl::Span<const int64_t>) {
  ir::Workload w = workload;
  const ir::Stage stage = w.stages[position];
  const ir::Expr product = w.pool[stage.values[0]];
  if (stage.reducer != ir::Reducer::kSum || product.op != Op::kMul)
    return absl::FailedPreconditionError("bf16: the stage is not a sum of products");
  ExprId factors[] = {product.a, product.b};
  BufferId rounded[] = {-1, -1};
  for (int f = 0; f < 2; ++f) {
    const ir::Expr load = w.pool[factors[f]];
    if (load.op != Op::kLoad || load.gathered >= 0 || load.dtype != DType::kF32)
      return absl::FailedPreconditionError("bf16: the factors are not plain elements in f32");
    const bool is_same = f == 1 && load.buffer == w.pool[product.a].buffer;
    rounded[f] = is_same ? rounded[0] : Rounded(w, position, load.buffer);
    factors[f] =
        w.pool.Cast(DType::kF32, LoadOf(w, rounded[f], ir::IndexList(w.pool.IndicesOf(load))));
  }
  w.stages[position].values[0] = w.pool.Binary(Op::kMul, factors[0], factors[1]);
  return Renumbered(std::move(w));
}

double Bf16Tolerance(const ir::Workload&, int, absl::Span<const int64_t>) {
  constexpr double kRounding = 0x1p-8;  // relative error of a factor, which gets 8 significant bits
  return (1 + kRounding) * (1 + kRounding) - 1;
}

}  // namespace hone::schedule

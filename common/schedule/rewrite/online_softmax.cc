
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

absl::Status NotOnlineSoftmax(absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("online_softmax: ", why));
}

// Replaces every read of an element-wise stage by its expression, except reads of `keep`.
ExprId Expanded(ir::Workload& w, ExprId id, ir::BufferId keep) {
  return w.pool.Rewrite(
      id,
      [&](const ir::Expr& load) -> ExprId {
        const int producer = w.tensors[load.buffer].stage;
        if (load.buffer == keep || producer < 0 || w.stages[producer].reducer != ir::Reducer::kNone)
          return ir::kNoExpr;
        const ir::IndexList indices = w.pool.IndicesOf(load);
        const auto at = [&](const Index& index) {
          return w.atoms.Substitute(index, [&](AtomId var) -> const Index* {
            for (size_t d = 0; d < indices.size(); ++d) {
              if (w.stages[producer].spatial[d].var == var) return &indices[d];
            }
            return nullptr;
          });
        };
        const ExprId body = w.pool.Rewrite(
            w.stages[producer].values[0], [](const ir::Expr&) { return ir::kNoExpr; }, at);
        return Expanded(w, body, keep);
      },
      [](const Index& index) { return index; });
}

bool Equal(const ir::ExprPool& pool, ExprId left, ExprId right) {
  if (left == right) return true;
  if (left == ir::kNoExpr || right == ir::kNoExpr) return false;
  const ir::Expr &a = pool[left], &b = pool[right];
  if (a.op != b.op || a.dtype != b.dtype || a.value != b.value || a.buffer != b.buffer ||
      a.gathered != b.gathered) {
    return false;
  }
  if ((a.indices >= 0) != (b.indices >= 0) ||
      (a.indices >= 0 && pool.IndicesOf(a) != pool.IndicesOf(b)))
    return false;
  return Equal(pool, a.a, b.a) && Equal(pool, a.b, b.b) && Equal(pool, a.c, b.c);
}

// Removes stages that are no longer read.
void DropDeadStages(ir::Workload& w) {
  for (size_t s = w.stages.size(); s-- > 0;) {
    const auto used = [&](ir::BufferId tensor) {
      if (w.tensors[tensor].output) return true;
      bool read = false;
      for (const ir::Stage& stage : w.stages) {
        for (ExprId value : stage.values)
          w.pool.VisitLoads(value, [&](const ir::Expr& load) { read |= load.buffer == tensor; });
      }
      return read;
    };
    if (absl::c_none_of(w.stages[s].tensors, used)) w.stages.erase(w.stages.begin() + s);
  }
}

}  // namespace

absl::StatusOr<ir::Workload> OnlineSoftmax(const ir::Workload& workload, int position,
                                           absl::Span<const int64_t>) {
  ir::Workload w = workload;
  const ir::Stage sum = w.stages[position];
  if (sum.reducer != ir::Reducer::kSum) return NotOnlineSoftmax("the stage is not a sum");
  // Σ exp(x − M), where another stage computes M as a maximum.
  ir::BufferId maximum = -1;
  for (const ExprId value : {sum.values[0], Expanded(w, sum.values[0], -1)}) {
    w.pool.VisitLoads(value, [&](const ir::Expr& load) {
      const int stage = w.tensors[load.buffer].stage;
      if (stage >= 0 && w.stages[stage].reducer == ir::Reducer::kMax) maximum = load.buffer;
    });
  }
  if (maximum < 0) return NotOnlineSoftmax("the sum reads no maximum");
  const ExprId value = Expanded(w, sum.values[0], maximum);
  const ir::Expr power = w.pool[value];
  const ir::Expr difference = power.op == Op::kExp ? w.pool[power.a] : ir::Expr{};
  if (difference.op != Op::kSub || w.pool[difference.b].op != Op::kLoad ||
      w.pool[difference.b].buffer != maximum) {
    return NotOnlineSoftmax("the sum is not of exp(x - maximum)");
  }
  const ir::Stage max = w.stages[w.tensors[maximum].stage];
  if (max.spatial.size() != sum.spatial.size() || max.reduce.size() != sum.reduce.size()) {
    return NotOnlineSoftmax("the maximum and the sum have other axes");
  }
  // The maximum's expression over the sum's axes.
  std::vector<std::pair<AtomId, Index>> renamed;
  const ir::IndexList read_at = w.pool.IndicesOf(w.pool[difference.b]);
  for (size_t d = 0; d < sum.spatial.size(); ++d) {
    if (read_at[d] != Index::Of(sum.spatial[d].var) ||
        max.spatial[d].extent != sum.spatial[d].extent) {
      return NotOnlineSoftmax("an element of the sum does not use its own maximum");
    }
    renamed.emplace_back(max.spatial[d].var, read_at[d]);
  }
  for (size_t d = 0; d < sum.reduce.size(); ++d) {
    if (max.reduce[d].extent != sum.reduce[d].extent)
      return NotOnlineSoftmax("the maximum and the sum reduce over other extents");
    renamed.emplace_back(max.reduce[d].var, Index::Of(sum.reduce[d].var));
  }
  const auto rename = [&](const Index& index) { return w.atoms.Substitute(index, renamed); };
  const ExprId expanded = Expanded(w, max.values[0], -1);
  const ExprId compared =
      w.pool.Rewrite(expanded, [](const ir::Expr&) { return ir::kNoExpr; }, rename);
  if (!Equal(w.pool, compared, difference.a))
    return NotOnlineSoftmax("the maximum is of another expression than the sum's x");
  std::vector<ir::Condition> guards;
  for (const ir::Condition& guard : max.guards)
    guards.push_back({rename(guard.index), guard.extent});
  if (guards != sum.guards) return NotOnlineSoftmax("the maximum and the sum have other guards");
  const ir::Tensor &m = w.tensors[maximum], &s = w.tensors[sum.tensors[0]];
  if (m.dtype != s.dtype || !ir::IsFloat(m.dtype))
    return NotOnlineSoftmax("the maximum and the sum are not of one float type");
  if (ir::AccumulatorOf(m.dtype) != m.dtype)
    return NotOnlineSoftmax("the sum would be rounded at every step");
  if (m.output || s.output)
    return NotOnlineSoftmax("the maximum or the sum is an output of the workload");

  ir::Stage& both = w.stages[w.tensors[maximum].stage];
  both.tensors = {maximum, sum.tensors[0]};
  both.reducer = ir::Reducer::kOnlineSoftmax;
  both.values.push_back(w.pool.Const(m.dtype, 1));
  w.stages.erase(w.stages.begin() + position);
  DropDeadStages(w);
  return Renumbered(std::move(w));
}

}  // namespace hone::schedule

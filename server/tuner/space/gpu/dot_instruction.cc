#include "server/tuner/space/gpu/dot_instruction.h"

#include <algorithm>

namespace hone::space {
namespace {

using ir::ExprId;

// Whether two values are computed by the same operations on operands of the same types.
bool SameOperations(const ir::ExprPool& pool, ExprId id, const ir::ExprPool& other_pool,
                    ExprId other) {
  if (id == ir::kNoExpr || other == ir::kNoExpr) return id == other;
  const ir::Expr &a = pool[id], &b = other_pool[other];
  if (a.op != b.op || a.dtype != b.dtype) return false;
  if (a.op == ir::Op::kLoad) return a.gathered < 0;
  const auto same = [&](ExprId own, ExprId of) {
    return SameOperations(pool, own, other_pool, of);
  };
  if (a.op == ir::Op::kMul && same(a.a, b.b) && same(a.b, b.a)) return true;
  return a.op != ir::Op::kConst && same(a.a, b.a) && same(a.b, b.b) && same(a.c, b.c);
}

}  // namespace

int64_t TermsOf(const ir::Intrinsic& dot) {
  return ir::DescriptionOf(dot).stages.back().reduce[0].extent;
}

const ir::Intrinsic* DotInstructionFor(const ir::Program& program, const ir::Block& block,
                                       const Contraction& contraction,
                                       const target::Target& target) {
  const ir::BlockIter& reduce = block.iters[contraction.reduce];
  bool fits = std::none_of(
      block.guards.begin(), block.guards.end(),
      [&](const ir::Condition& guard) { return program.atoms.DependsOn(guard.index, reduce.var); });
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    fits &= DimensionOf(program.atoms, program.pool.IndicesOf(load), reduce.var) >= 0;
  });
  if (!fits) return nullptr;
  for (const ir::Intrinsic& dot : ir::Intrinsics()) {
    if (dot.shape != ir::Intrinsic::Shape::kScalar || dot.arch != target.arch ||
        !target.HasFeature(dot.feature)) {
      continue;
    }
    const ir::Workload& description = ir::DescriptionOf(dot);
    const ir::Stage& stage = description.stages.back();
    if (stage.reducer == block.reducer && reduce.extent % TermsOf(dot) == 0 &&
        description.tensors[stage.tensors[0]].dtype == program.buffers[block.outputs[0]].dtype &&
        SameOperations(program.pool, block.values[0], description.pool, stage.values[0])) {
      return &dot;
    }
  }
  return nullptr;
}

}  // namespace hone::space

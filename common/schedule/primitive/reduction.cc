
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/region.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/concurrency.h"
#include "common/schedule/primitive/one_to_one.h"
#include "common/schedule/primitive/placement.h"
#include "common/schedule/primitive/tensorize.h"
#include "common/schedule/replay.h"

namespace hone::schedule {
namespace {

using ir::Index;
using ir::NodeId;

}  // namespace

absl::StatusOr<NodeId> DecomposeReduction(ir::Program& program, NodeId block, NodeId loop) {
  const ir::Block content = program.BlockOf(block);
  if (!content.has_init)
    return Illegal(program, block, "decompose_reduction: the block has no init");
  if (!program.IsUnder(block, loop))
    return Illegal(program, loop, "decompose_reduction: the loop is not above the block");
  if (program.IsLoop(program.node(loop).parent) &&
      InTensorNest(program, program.node(loop).parent)) {
    return Illegal(program, loop, "decompose_reduction: the loop is in a tensor nest");
  }
  for (NodeId above : program.LoopsAbove(loop)) {
    if (program.IsReductionLoop(above, content)) {
      return Illegal(program, above, "decompose_reduction: a loop above the given one reduces");
    }
  }
  for (NodeId other : program.BlocksUnder(loop)) {
    const auto& outputs = program.BlockOf(other).outputs;
    const bool same = absl::c_any_of(content.outputs, [&](ir::BufferId output) {
      return absl::c_linear_search(outputs, output);
    });
    if (other != block && same)
      return Illegal(program, other,
                     "decompose_reduction: another block under the loop writes the same buffer");
  }
  // The loops from the given one inwards on which the block's output element depends.
  std::vector<NodeId> inner;
  for (NodeId at : program.LoopsAbove(block)) {
    if (!program.IsUnder(at, loop) || !program.IsSpatialLoop(at, content)) continue;
    // A loop that also reduces cannot be copied without the reduction.
    if (program.IsReductionLoop(at, content)) {
      return Illegal(program, at,
                     "decompose_reduction: the loop carries spatial and reduction iterations");
    }
    inner.push_back(at);
  }
  // Once the init is separate, the block must not reduce into an element twice.
  if (!OneToOneUnder(program, block, loop)) {
    return Illegal(program, loop,
                   "decompose_reduction: iterations of the loop may compute the same elements");
  }
  ir::Block init{.name = program.FreshBlockName(absl::StrCat(content.name, "_init")),
                 .exact = content.exact,
                 .outputs = content.outputs};
  std::vector<NodeId> copies;
  std::vector<Index> copy_index;
  for (NodeId at : inner) {
    copies.push_back(program.NewLoop(
        absl::StrCat(program.atoms[program.node(at).var].name, "_init"), program.node(at).extent));
    copy_index.push_back(Index::Of(program.node(copies.back()).var));
  }
  const auto to_copy = [&](ir::AtomId var) -> const Index* {
    for (size_t i = 0; i < inner.size(); ++i) {
      if (program.node(inner[i]).var == var) return &copy_index[i];
    }
    return nullptr;
  };
  std::vector<Index> fresh;
  for (const ir::BlockIter& iter : content.iters) {
    if (iter.reduce) continue;
    const ir::AtomId var = program.atoms.AddVar(program.atoms[iter.var].name, iter.extent);
    fresh.push_back(Index::Of(var));
    init.iters.push_back(
        {var, iter.extent, false, program.atoms.Substitute(iter.binding, to_copy)});
  }
  const auto to_fresh = [&](ir::AtomId var) -> const Index* {
    size_t spatial = 0;
    for (const ir::BlockIter& iter : content.iters) {
      if (iter.var == var && !iter.reduce) return &fresh[spatial];
      spatial += !iter.reduce;
    }
    return nullptr;
  };
  for (const Index& index : content.indices)
    init.indices.push_back(program.atoms.Substitute(index, to_fresh));
  for (size_t c = 0; c < content.outputs.size(); ++c) {
    const ir::DType dtype = program.buffers[content.outputs[c]].dtype;
    init.values.push_back(program.pool.Const(
        dtype, ir::ReducerIdentity(content.reducer, static_cast<int>(c), dtype)));
  }
  for (const ir::Condition& predicate : content.predicates) {
    // Predicates over reduction loops do not apply to the init, although they may be needed to keep
    // its element inside the domain.
    const Index index = program.atoms.Substitute(predicate.index, to_copy);
    bool reduces = false;
    program.atoms.VisitVars(predicate.index, [&](ir::AtomId var) {
      for (NodeId at : program.LoopsAbove(block))
        reduces |= program.node(at).var == var && program.IsReductionLoop(at, content);
    });
    if (!reduces) {
      init.predicates.push_back({index, predicate.extent});
      continue;
    }
    for (const ir::BlockIter& iter : init.iters) {
      const ir::Range range = program.atoms.RangeOf(iter.binding);
      const ir::Condition inside{iter.binding, iter.extent};
      const bool known = (range.min >= 0 && range.max < iter.extent) ||
                         absl::c_linear_search(init.predicates, inside);
      if (!known) init.predicates.push_back(inside);
    }
  }
  NodeId node = ir::kNoNode;
  HONE_RETURN_IF_ERROR(KeepConcurrencyLegal(program, {block}, [&](ir::Program& p) {
    node = p.NewBlock(std::move(init));
    NodeId at = p.node(loop).parent;
    size_t position = p.PositionInParent(loop);
    for (NodeId copy : copies) {
      p.Insert(at, position, copy);
      at = copy;
      position = 0;
    }
    p.Insert(at, position, node);
    p.BlockOf(block).has_init = false;
  }));
  return node;
}

absl::StatusOr<NodeId> Rfactor(ir::Program& program, NodeId block, NodeId loop, int64_t axis) {
  HONE_RETURN_IF_ERROR(CheckPartialReduction(program, block, loop, "rfactor"));
  if (program.node(loop).loop != ir::LoopKind::kSerial)
    return Illegal(program, loop, "rfactor: the loop is not serial");
  const auto rank = static_cast<int64_t>(program.BlockOf(block).indices.size());
  if (axis == -1) axis = rank;
  if (axis < 0 || axis > rank || rank == ir::kMaxRank) {
    return Illegal(program, block,
                   absl::StrCat("rfactor: no dimension ", axis, " can be added to ", rank,
                                "; at most ", ir::kMaxRank));
  }
  NodeId made = ir::kNoNode;
  HONE_RETURN_IF_ERROR(KeepConcurrencyLegal(program, {block}, [&](ir::Program& p) {
    made = ir::DivideReduction(p, block, loop, static_cast<size_t>(axis)).partial;
  }));
  return made;
}

absl::Status ApplyRfactor(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(1));
  int64_t axis = -1;
  if (call.operands() > 2) {
    HONE_ASSIGN_OR_RETURN(axis, call.IntBetween(2, -1, ir::kMaxRank));
  }
  HONE_ASSIGN_OR_RETURN(const NodeId made, Rfactor(call.program(), block, loop, axis));
  return call.Return({made});
}

}  // namespace hone::schedule

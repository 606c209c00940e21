#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/region.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/placement.h"
#include "common/schedule/primitive/regenerate.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::Index;
using ir::NodeId;

absl::Status ReverseComputeAt(ir::Program& program, NodeId block, NodeId loop) {
  if (program.IsUnder(block, loop)) return Illegal(program, block, "reverse_compute_at: the block is under the loop already");
  const ir::Block content = program.BlockOf(block);
  // The computed buffers that the block reads, their producers, and the one read that fixes its iterations.
  std::vector<NodeId> producers;
  ir::BufferId buffer = -1;
  ir::IndexList indices;
  bool same_indices = true;
  for (ir::ExprId value : content.values) {
    program.pool.VisitLoads(value, [&](const ir::Expr& load) {
      const std::vector<NodeId> writers = program.WritersOf(load.buffer);
      if (writers.empty()) return;
      same_indices &= buffer < 0 || (buffer == load.buffer && indices == program.pool.IndicesOf(load));
      buffer = load.buffer;
      indices = program.pool.IndicesOf(load);
      producers = writers;
    });
  }
  if (buffer < 0) return Illegal(program, block, "reverse_compute_at: the block reads no computed buffer");
  if (!same_indices) return Illegal(program, block, "reverse_compute_at: the block reads more than one computed element");
  for (const Index& index : indices) {
    const bool own = std::any_of(content.iters.begin(), content.iters.end(),
                                 [&](const ir::BlockIter& iter) { return !iter.reduce && index.SingleAtom() == iter.var; });
    if (!own) return Illegal(program, block, "reverse_compute_at: the block does not read at its own iteration variables");
  }
  for (const ir::BlockIter& iter : content.iters) {
    const bool fixed = std::any_of(indices.begin(), indices.end(), [&](const Index& i) { return i.SingleAtom() == iter.var; });
    if (!fixed) return Illegal(program, block, "reverse_compute_at: an iteration variable does not follow from what is read");
  }
  for (NodeId producer : producers) {
    if (!program.IsUnder(producer, loop)) return Illegal(program, producer, "reverse_compute_at: a producer is not under the loop");
    const ir::Block& producing = program.BlockOf(producer);
    std::vector<NodeId> around = program.LoopsAbove(loop);
    around.push_back(loop);
    for (NodeId above : around) {
      if (program.IsReductionLoop(above, producing)) {
        return Illegal(program, above, "reverse_compute_at: the producer is not complete under the loop, which reduces");
      }
      // Iterations that produce the same elements would consume them again and again.
      const bool distinct = std::any_of(producing.iters.begin(), producing.iters.end(), [&](const ir::BlockIter& iter) {
        return !iter.reduce && program.atoms.DependsOn(iter.binding, program.node(above).var);
      });
      if (!distinct && program.node(above).extent.value > 1) {
        return Illegal(program, above, "reverse_compute_at: every iteration of the loop produces the same elements");
      }
    }
  }
  for (NodeId reader : program.AllBlocks()) {
    if (reader != block && program.Reads(program.BlockOf(reader), content.outputs[0]) && program.IsUnder(reader, loop)) {
      return Illegal(program, reader, "reverse_compute_at: the result is read under the loop");
    }
  }
  const std::vector<ir::Interval> region = ir::RegionWritten(program, buffer, loop);
  // Iterations must consume disjoint parts: every outer term steps over the whole region, and none is mixed with inner ones.
  std::vector<ir::AtomId> outer;
  for (NodeId above : program.LoopsAbove(loop)) outer.push_back(program.node(above).var);
  outer.push_back(program.node(loop).var);
  const auto is_outer = [&](ir::AtomId var) { return std::find(outer.begin(), outer.end(), var) != outer.end(); };
  for (NodeId producer : producers) {
    const ir::Block producing = program.BlockOf(producer);
    for (size_t d = 0; d < producing.indices.size(); ++d) {
      const Index index = program.OverLoops(producing, producing.indices[d]);
      for (const ir::IndexTerm& term : index.terms()) {
        bool any_outer = false, any_inner = false;
        program.atoms.VisitVars(Index::Of(term.atom), [&](ir::AtomId var) { (is_outer(var) ? any_outer : any_inner) = true; });
        if (any_outer && (any_inner || std::abs(term.coeff) < region[d].extent.value)) {
          return Illegal(program, loop, "reverse_compute_at: iterations of the loop produce interleaved parts");
        }
      }
    }
  }
  size_t position = 0;
  for (size_t i = 0; i < program.node(loop).children.size(); ++i) {
    for (NodeId producer : producers) {
      if (program.IsUnder(producer, program.node(loop).children[i])) position = i + 1;
    }
  }
  program.Detach(block);
  Regenerate(program, block, region, indices, loop, position);
  return absl::OkStatus();
}

absl::Status ApplyReverseComputeAt(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(1));
  return ReverseComputeAt(call.program(), block, loop);
}

}  // namespace hone::schedule

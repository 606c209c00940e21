#include <algorithm>

#include "common/base/status_macros.h"
#include "common/ir/cases.h"
#include "common/ir/region.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/concurrency.h"
#include "common/schedule/primitive/one_to_one.h"
#include "common/schedule/primitive/placement.h"
#include "common/schedule/primitive/regenerate.h"
#include "common/schedule/primitive/tensor_nest.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::Index;
using ir::NodeId;

namespace {

// Whether a computed buffer is complete before the nest that contains a loop.
bool IsCompleteBefore(const ir::Program& program, const std::vector<NodeId>& writers, NodeId loop) {
  NodeId nest = loop;
  while (program.node(program.node(nest).parent).kind != ir::Node::Kind::kKernel)
    nest = program.node(nest).parent;
  const std::vector<NodeId> blocks = program.AllBlocks();
  const auto first = std::find_if(blocks.begin(), blocks.end(),
                                  [&](NodeId block) { return program.IsUnder(block, nest); });
  return std::all_of(writers.begin(), writers.end(), [&](NodeId writer) {
    return std::find(blocks.begin(), first, writer) != first;
  });
}

}  // namespace

absl::Status ReverseComputeAt(ir::Program& program, NodeId block, NodeId loop) {
  if (program.IsUnder(block, loop))
    return Illegal(program, block, "reverse_compute_at: the block is under the loop already");
  if (program.KernelOf(block) != program.KernelOf(loop)) {
    return Illegal(program, loop,
                   "reverse_compute_at: the loop is in another kernel than the block");
  }
  if (program.node(loop).loop == ir::LoopKind::kVectorized) {
    return Illegal(program, loop, "reverse_compute_at: the loop is vectorized");
  }
  if (InTensorNest(program, block) || InTensorNest(program, loop)) {
    return Illegal(program, loop, "reverse_compute_at: the block or the loop is in a tensor nest");
  }
  const ir::Block content = program.BlockOf(block);
  for (ir::BufferId output : content.outputs) {
    if (program.WritersOf(output).size() != 1)
      return Illegal(program, block, "reverse_compute_at: another block writes the same buffer");
  }
  // Where a guard fails, nothing is read. The produced region then does not determine all
  // iterations of the block.
  if (!content.guards.empty())
    return Illegal(program, block, "reverse_compute_at: the block has guards");
  if (ir::HasGuardedValue(program.pool, content.values)) {
    return Illegal(program, block, "reverse_compute_at: the block computes guarded values");
  }
  // The computed buffers that the block reads, their producers, and the read that determines its
  // iterations.
  std::vector<NodeId> producers;
  NodeId before = ir::kNoNode;  // a producer in an earlier nest
  ir::BufferId buffer = -1;
  ir::IndexList indices;
  bool same_indices = true;
  for (ir::ExprId value : content.values) {
    program.pool.VisitLoads(value, [&](const ir::Expr& load) {
      const std::vector<NodeId> writers = program.WritersOf(load.buffer);
      if (writers.empty()) return;
      if (IsCompleteBefore(program, writers, loop)) {
        before = writers[0];
        return;
      }
      same_indices &=
          buffer < 0 || (buffer == load.buffer && indices == program.pool.IndicesOf(load));
      buffer = load.buffer;
      indices = program.pool.IndicesOf(load);
      producers = writers;
    });
  }
  if (buffer < 0 && before != ir::kNoNode)
    return Illegal(program, before, "reverse_compute_at: a producer is not under the loop");
  if (buffer < 0)
    return Illegal(program, block, "reverse_compute_at: the block reads no computed buffer");
  if (!same_indices)
    return Illegal(program, block,
                   "reverse_compute_at: the block reads more than one computed element");
  for (const Index& index : indices) {
    const bool own = std::any_of(
        content.iters.begin(), content.iters.end(),
        [&](const ir::BlockIter& iter) { return !iter.reduce && index.SingleAtom() == iter.var; });
    if (!own)
      return Illegal(program, block,
                     "reverse_compute_at: the block does not read at its own iteration variables");
  }
  for (const ir::BlockIter& iter : content.iters) {
    const bool fixed = std::any_of(indices.begin(), indices.end(),
                                   [&](const Index& i) { return i.SingleAtom() == iter.var; });
    if (!fixed)
      return Illegal(program, block,
                     "reverse_compute_at: an iteration variable does not follow from what is read");
  }
  for (NodeId producer : producers) {
    if (!program.IsUnder(producer, loop))
      return Illegal(program, producer, "reverse_compute_at: a producer is not under the loop");
    const ir::Block& producing = program.BlockOf(producer);
    std::vector<NodeId> above_producer = program.LoopsAbove(loop);
    above_producer.push_back(loop);
    for (NodeId above : above_producer) {
      if (program.IsReductionLoop(above, producing)) {
        return Illegal(
            program, above,
            "reverse_compute_at: the producer is not complete under the loop, which reduces");
      }
    }
  }
  for (NodeId reader : program.AllBlocks()) {
    if (reader != block && program.Reads(program.BlockOf(reader), content.outputs[0]) &&
        program.IsUnder(reader, loop)) {
      return Illegal(program, reader, "reverse_compute_at: the result is read under the loop");
    }
  }
  const std::vector<ir::Interval> region = ir::RegionWritten(program, buffer, loop);
  // Iterations must consume disjoint parts: the consumed element determines the iterations of the
  // loop and of those above it.
  std::vector<Known> known;
  for (const ir::Interval& interval : region)
    known.push_back({interval.min, interval.extent.value - 1});
  const std::vector<ir::AtomId> determined =
      Determined(program, std::move(known), [](ir::AtomId) { return false; });
  std::vector<NodeId> around = program.LoopsAbove(loop);
  around.push_back(loop);
  for (NodeId at : around) {
    if (program.node(at).extent.value > 1 &&
        std::find(determined.begin(), determined.end(), program.node(at).var) == determined.end()) {
      return Illegal(
          program, at,
          "reverse_compute_at: iterations of the loop produce interleaved parts, or the same");
    }
  }
  size_t position = 0;
  for (size_t i = 0; i < program.node(loop).children.size(); ++i) {
    for (NodeId producer : producers) {
      if (program.IsUnder(producer, program.node(loop).children[i])) position = i + 1;
    }
  }
  return KeepConcurrencyLegal(program, {block, loop}, [&](ir::Program& p) {
    p.Detach(block);
    p.BlockOf(block).exact = true;
    Regenerate(p, block, region, indices, loop, position);
  });
}

absl::Status ApplyReverseComputeAt(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(1));
  return ReverseComputeAt(call.program(), block, loop);
}

}  // namespace hone::schedule

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/cases.h"
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

// Whether a computed buffer is complete before the nest that contains a loop.
bool IsCompleteBefore(const ir::Program& program, const std::vector<NodeId>& writers, NodeId loop) {
  const NodeId nest = program.NestOf(loop);
  const std::vector<NodeId> blocks = program.AllBlocks();
  const auto first =
      absl::c_find_if(blocks, [&](NodeId block) { return program.IsUnder(block, nest); });
  return absl::c_all_of(
      writers, [&](NodeId writer) { return std::find(blocks.begin(), first, writer) != first; });
}

// Gives a detached block new loops and puts it under `parent` at `position`. If `indices[d]` is an
// iteration variable of the block, it runs over region[d], with a predicate if the region can leave
// the variable's domain. Other variables run over their whole domain. Spatial loops come first.
void Regenerate(ir::Program& program, NodeId block, const std::vector<ir::Interval>& region,
                const ir::IndexList& indices, NodeId parent, size_t position) {
  ir::Block content = program.BlockOf(block);
  content.predicates.clear();
  std::vector<NodeId> loops;
  for (const bool reduce : {false, true}) {
    for (ir::BlockIter& iter : content.iters) {
      if (iter.reduce != reduce) continue;
      ir::Interval interval{Index(0), ir::ExtentTable::Constant(iter.extent)};
      for (size_t d = 0; d < region.size(); ++d) {
        if (indices[d].SingleAtom() == iter.var) interval = region[d];
      }
      // The region covers the whole domain.
      if (interval.min.IsConstant() && interval.min.constant() <= 0 &&
          interval.min.constant() + interval.extent.value >= iter.extent) {
        interval = {Index(0), ir::ExtentTable::Constant(iter.extent)};
      }
      const NodeId loop = program.NewLoop(
          absl::StrCat(content.name, ".", program.atoms[iter.var].name), interval.extent);
      loops.push_back(loop);
      iter.binding = interval.min + Index::Of(program.node(loop).var);
      const ir::Range range = program.atoms.RangeOf(iter.binding);
      if (range.min < 0 || range.max >= iter.extent)
        content.predicates.push_back({iter.binding, iter.extent});
    }
  }
  program.BlockOf(block) = std::move(content);
  NodeId at = parent;
  for (size_t i = 0; i < loops.size(); ++i) {
    program.Insert(at, i == 0 ? position : 0, loops[i]);
    at = loops[i];
  }
  program.Insert(at, loops.empty() ? position : 0, block);
}

}  // namespace

absl::Status ComputeAt(ir::Program& program, NodeId block, NodeId loop) {
  if (program.IsUnder(block, loop))
    return Illegal(program, block, "compute_at: the block is under the loop already");
  if (program.KernelOf(block) != program.KernelOf(loop)) {
    return Illegal(program, loop, "compute_at: the loop is in another kernel than the block");
  }
  if (program.node(loop).loop == ir::LoopKind::kVectorized) {
    return Illegal(program, loop, "compute_at: the loop is vectorized");
  }
  if (InTensorNest(program, block) || InTensorNest(program, loop)) {
    return Illegal(program, loop, "compute_at: the block or the loop is in a tensor nest");
  }
  const ir::Block content = program.BlockOf(block);
  if (content.outputs.size() != 1)
    return Illegal(program, block, "compute_at: the block writes several buffers");
  const ir::BufferId buffer = content.outputs[0];
  if (program.buffers[buffer].output) {
    return Illegal(program, block,
                   absl::StrCat("compute_at: ", program.buffers[buffer].name,
                                " is an output of the workload"));
  }
  if (program.WritersOf(buffer).size() != 1)
    return Illegal(program, block, "compute_at: another block writes the same buffer");
  const std::vector<NodeId> readers = program.ReadersOf(buffer);
  if (readers.empty()) return Illegal(program, block, "compute_at: no block reads the result");
  for (NodeId reader : readers) {
    if (!program.IsUnder(reader, loop))
      return Illegal(program, reader, "compute_at: a reader is not under the loop");
  }
  for (const Index& index : content.indices) {
    const bool own = absl::c_any_of(content.iters, [&](const ir::BlockIter& iter) {
      return !iter.reduce && index.SingleAtom() == iter.var;
    });
    if (!own)
      return Illegal(program, block,
                     "compute_at: the block does not write at its own iteration variables");
  }
  // Everything that the block reads must be complete before the loop's iteration.
  for (NodeId writer : program.AllBlocks()) {
    for (ir::BufferId output : program.BlockOf(writer).outputs) {
      if (output != buffer && program.Reads(content, output) && program.IsUnder(writer, loop)) {
        return Illegal(program, writer,
                       "compute_at: the block reads what is computed under the loop");
      }
    }
  }
  const std::vector<ir::Interval> region = ir::RegionRead(program, buffer, loop);
  size_t position = program.node(loop).children.size();
  for (size_t i = program.node(loop).children.size(); i-- > 0;) {
    const NodeId child = program.node(loop).children[i];
    for (NodeId reader : readers) {
      if (program.IsUnder(reader, child)) position = i;
    }
  }
  return KeepConcurrencyLegal(program, {block, loop}, [&](ir::Program& p) {
    p.Detach(block);
    p.BlockOf(block).exact = false;
    Regenerate(p, block, region, content.indices, loop, position);
  });
}

absl::Status ApplyComputeAt(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  if (call.Stays(1)) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(1));
  return ComputeAt(call.program(), block, loop);
}

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
    const bool own = absl::c_any_of(content.iters, [&](const ir::BlockIter& iter) {
      return !iter.reduce && index.SingleAtom() == iter.var;
    });
    if (!own)
      return Illegal(program, block,
                     "reverse_compute_at: the block does not read at its own iteration variables");
  }
  for (const ir::BlockIter& iter : content.iters) {
    const bool fixed =
        absl::c_any_of(indices, [&](const Index& i) { return i.SingleAtom() == iter.var; });
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
        !absl::c_linear_search(determined, program.node(at).var)) {
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

}  // namespace hone::schedule

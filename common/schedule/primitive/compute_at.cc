#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/region.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/concurrency.h"
#include "common/schedule/primitive/placement.h"
#include "common/schedule/primitive/regenerate.h"
#include "common/schedule/primitive/tensor_nest.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::Index;
using ir::NodeId;

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
    const bool own = std::any_of(
        content.iters.begin(), content.iters.end(),
        [&](const ir::BlockIter& iter) { return !iter.reduce && index.SingleAtom() == iter.var; });
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

}  // namespace hone::schedule

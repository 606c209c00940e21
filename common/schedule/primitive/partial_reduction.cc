#include "common/schedule/primitive/partial_reduction.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/ir/partial_reduction.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/one_to_one.h"
#include "common/schedule/primitive/tensor_nest.h"

namespace hone::schedule {

using ir::NodeId;

absl::Status CheckPartialReduction(ir::Program& program, NodeId block, NodeId loop,
                                   absl::string_view what) {
  const ir::Block content = program.BlockOf(block);
  const auto illegal = [&](NodeId at, absl::string_view why) {
    return Illegal(program, at, absl::StrCat(what, ": ", why));
  };
  if (content.reducer == ir::Reducer::kNone) return illegal(block, "the block does not reduce");
  if (InTensorNest(program, block)) return illegal(block, "the block is in a tensor nest");
  if (!content.has_init) return illegal(block, "the block has no init");
  const ir::DType dtype = program.buffers[content.outputs[0]].dtype;
  if (ir::AccumulatorOf(content.reducer, dtype) != dtype) {
    return illegal(block, absl::StrCat("partial results would be rounded to ", ir::DTypeName(dtype),
                                       "; after cache_write they are f32"));
  }
  if (program.WritersOf(content.outputs[0]).size() != 1)
    return illegal(block, "another block writes the same buffer");
  if (!program.IsUnder(block, loop)) return illegal(loop, "the loop is not above the block");
  if (!program.IsReductionLoop(loop, content))
    return illegal(loop, "the block does not reduce over the loop");
  const ir::ReducingLoops loops = ir::ReducingLoopsOf(program, content, block);
  if (loops.mixed != ir::kNoNode)
    return illegal(loops.mixed, "the loop carries spatial and reduction iterations");
  if (ir::HasMixedPredicate(program, content, loops.reducing))
    return illegal(block, "a predicate of the block mixes spatial and reduction loops");
  for (NodeId other : program.BlocksUnder(loops.reducing[0])) {
    if (other == block) continue;
    for (ir::BufferId output : content.outputs) {
      const auto& outputs = program.BlockOf(other).outputs;
      if (program.Reads(program.BlockOf(other), output) ||
          std::find(outputs.begin(), outputs.end(), output) != outputs.end()) {
        return illegal(other, "another block under the reduction uses its result");
      }
    }
  }
  if (!OneToOneUnder(program, block, loops.reducing[0])) {
    return illegal(loops.reducing[0], "iterations of the loop may compute the same elements");
  }
  return absl::OkStatus();
}

}  // namespace hone::schedule

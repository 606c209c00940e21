#include <algorithm>

#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/padding.h"
#include "common/schedule/primitive/placement.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

absl::StatusOr<NodeId> DecomposePadding(ir::Program& program, NodeId block, NodeId loop) {
  const ir::Block& content = program.BlockOf(block);
  const bool pads = content.reducer == ir::Reducer::kSum && content.has_init &&
                    std::none_of(content.iters.begin(), content.iters.end(),
                                 [](const ir::BlockIter& iter) { return iter.reduce; });
  if (!pads) return Illegal(program, block, "decompose_padding: the block does not pad");
  HONE_ASSIGN_OR_RETURN(const NodeId zeros, DecomposeReduction(program, block, loop));
  // Where the guards hold, 0 + x is x.
  program.BlockOf(block).reducer = ir::Reducer::kNone;
  return zeros;
}

absl::Status ApplyDecomposePadding(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(1));
  HONE_ASSIGN_OR_RETURN(const NodeId zeros, DecomposePadding(call.program(), block, loop));
  return call.Return({zeros});
}

}  // namespace hone::schedule

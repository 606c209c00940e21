#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/partial_reduction.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/concurrency.h"
#include "common/schedule/primitive/partial_reduction.h"
#include "common/schedule/primitive/placement.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

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

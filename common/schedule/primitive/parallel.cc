#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/concurrency.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

absl::Status Parallel(ir::Program& program, NodeId loop) {
  if (program.node(loop).loop != ir::LoopKind::kSerial)
    return Illegal(program, loop, "parallel: the loop is not serial");
  for (NodeId above : program.LoopsAbove(loop)) {
    if (program.node(above).loop == ir::LoopKind::kParallel)
      return Illegal(program, above, "parallel: a loop above is parallel already");
    if (program.node(above).loop == ir::LoopKind::kBound)
      return Illegal(program, above, "parallel: a loop above is bound to a GPU axis");
  }
  const auto visit = [&](auto&& self, NodeId id) -> absl::Status {
    if (id != loop && program.node(id).loop == ir::LoopKind::kParallel) {
      return Illegal(program, id, "parallel: a loop below is parallel already");
    }
    if (program.node(id).loop == ir::LoopKind::kBound)
      return Illegal(program, id, "parallel: a loop below is bound to a GPU axis");
    for (NodeId child : program.node(id).children) HONE_RETURN_IF_ERROR(self(self, child));
    return absl::OkStatus();
  };
  HONE_RETURN_IF_ERROR(visit(visit, loop));
  HONE_RETURN_IF_ERROR(CheckConcurrent(program, loop, "parallel", /*privates=*/true));
  program.node(loop).loop = ir::LoopKind::kParallel;
  return absl::OkStatus();
}

absl::Status ApplyParallel(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(0));
  return Parallel(call.program(), loop);
}

}  // namespace hone::schedule

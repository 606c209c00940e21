#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

absl::Status Parallel(ir::Program& program, NodeId loop) {
  if (program.node(loop).loop != ir::LoopKind::kSerial) return Illegal(program, loop, "parallel: the loop is not serial");
  for (NodeId above : program.LoopsAbove(loop)) {
    if (program.node(above).loop == ir::LoopKind::kParallel) return Illegal(program, above, "parallel: a loop above is parallel already");
  }
  const auto visit = [&](auto&& self, NodeId id) -> absl::Status {
    if (id != loop && program.node(id).loop == ir::LoopKind::kParallel) {
      return Illegal(program, id, "parallel: a loop below is parallel already");
    }
    for (NodeId child : program.node(id).children) HONE_RETURN_IF_ERROR(self(self, child));
    return absl::OkStatus();
  };
  HONE_RETURN_IF_ERROR(visit(visit, loop));
  const ir::AtomId var = program.node(loop).var;
  for (NodeId id : program.BlocksUnder(loop)) {
    const ir::Block block = program.BlockOf(id);
    if (program.IsReductionLoop(loop, block)) {
      return Illegal(program, loop, absl::StrCat("parallel: block ", block.name, " reduces over the loop"));
    }
    const bool distinct = std::any_of(block.iters.begin(), block.iters.end(), [&](const ir::BlockIter& iter) {
      return !iter.reduce && program.atoms.DependsOn(iter.binding, var);
    });
    if (distinct) continue;
    for (ir::BufferId buffer : block.outputs) {
      std::vector<NodeId> users = program.WritersOf(buffer);
      const std::vector<NodeId> readers = program.ReadersOf(buffer);
      users.insert(users.end(), readers.begin(), readers.end());
      const bool is_private = !program.buffers[buffer].output &&
                              std::all_of(users.begin(), users.end(), [&](NodeId user) { return program.IsUnder(user, loop); });
      if (!is_private) {
        return Illegal(program, loop, absl::StrCat("parallel: every iteration writes the same elements of ", program.buffers[buffer].name));
      }
    }
  }
  program.node(loop).loop = ir::LoopKind::kParallel;
  return absl::OkStatus();
}

absl::Status ApplyParallel(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(0));
  return Parallel(call.program(), loop);
}

}  // namespace hone::schedule

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/annotate.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

absl::Status AsyncCopy(ir::Program& program, NodeId block) {
  const ir::Block& content = program.BlockOf(block);
  const bool copies =
      content.reducer == ir::Reducer::kNone && program.pool[content.values[0]].op == ir::Op::kLoad;
  if (!copies) return Illegal(program, block, "async_copy: the block does more than copy");
  const ir::Scope scope = program.buffers[content.outputs[0]].scope;
  if (scope != ir::Scope::kShared && scope != ir::Scope::kLocal) {
    return Illegal(program, block,
                   absl::StrCat("async_copy: the copy is in scope ", ir::ScopeName(scope),
                                ", not shared or local"));
  }
  ir::Set(program.node(block).annotations, ir::Annotation::Key::kAsyncCopy, 1);
  return absl::OkStatus();
}

absl::Status ApplyAsyncCopy(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  return AsyncCopy(call.program(), block);
}

}  // namespace hone::schedule

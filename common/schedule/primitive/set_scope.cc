#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/copy_nest.h"
#include "common/schedule/primitive/data.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

absl::Status SetScope(ir::Program& program, NodeId block, ir::Scope scope) {
  for (ir::BufferId id : program.BlockOf(block).outputs) {
    const ir::Buffer& buffer = program.buffers[id];
    if (buffer.output)
      return Illegal(program, block,
                     absl::StrCat("set_scope: ", buffer.name, " is an output of the workload"));
    if (program.node(program.KernelOf(block)).name == ir::kPrepackKernel) {
      return Illegal(program, block,
                     absl::StrCat("set_scope: ", buffer.name,
                                  " is computed ahead of time, so its scope must stay global"));
    }
  }
  for (ir::BufferId id : program.BlockOf(block).outputs) program.buffers[id].scope = scope;
  return absl::OkStatus();
}

absl::Status ApplySetScope(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  HONE_ASSIGN_OR_RETURN(const std::string name, call.Text(1));
  HONE_ASSIGN_OR_RETURN(const ir::Scope scope, ScopeFromName(name));
  return SetScope(call.program(), block, scope);
}

}  // namespace hone::schedule

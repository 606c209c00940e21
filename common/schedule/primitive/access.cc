#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

absl::Status ApplyBlock(Call& call) {
  HONE_ASSIGN_OR_RETURN(const std::string name, call.Text(0));
  const NodeId block = call.program().FindBlock(name);
  if (block == ir::kNoNode) {
    return absl::NotFoundError(absl::StrCat("no block is called '", name.substr(0, 64), "' in\n", call.program().ToText()));
  }
  return call.Return({block});
}

absl::Status ApplyLoops(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  return call.Return(call.program().LoopsAbove(block));
}

}  // namespace hone::schedule

#include <vector>

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
    return absl::NotFoundError(
        absl::StrCat("unknown block '", name.substr(0, 64), "' in\n", call.program().ToText()));
  }
  return call.Return({block});
}

absl::Status ApplyLoops(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  std::vector<NodeId> loops = call.program().LoopsAbove(block);
  if (call.operands() > 1) {
    HONE_ASSIGN_OR_RETURN(const ir::Extent innermost, call.Int(1));
    const auto above = static_cast<int64_t>(loops.size());
    if (call.operands() > 2 || innermost.value < 1 || innermost.value > above) {
      return absl::InvalidArgumentError(
          absl::StrCat("loops takes one number from 1 to the ", above, " loops around the block"));
    }
    loops.erase(loops.begin(), loops.end() - static_cast<ptrdiff_t>(innermost.value));
  }
  return call.Return(loops);
}

}  // namespace hone::schedule

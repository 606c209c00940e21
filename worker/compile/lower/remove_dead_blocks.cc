#include <algorithm>

#include "worker/compile/lower/passes.h"

namespace hone::lower {

ir::Program RemoveDeadBlocks(const ir::Program& original) {
  ir::Program program = original;
  const auto is_read = [&](ir::BufferId buffer) {
    return program.buffers[buffer].output || !program.ReadersOf(buffer).empty();
  };
  // A block that only dead blocks read is also dead, and usually precedes them.
  for (bool changed = true; changed;) {
    changed = false;
    const std::vector<ir::NodeId> blocks = program.AllBlocks();
    for (auto id = blocks.rbegin(); id != blocks.rend(); ++id) {
      const ir::Block& block = program.BlockOf(*id);
      if (std::any_of(block.outputs.begin(), block.outputs.end(), is_read)) continue;
      program.Detach(*id);
      changed = true;
    }
  }
  return program;
}

}  // namespace hone::lower

#include <algorithm>

#include "common/ir/region.h"
#include "worker/compile/lower/buffer_uses.h"
#include "worker/compile/lower/passes.h"

namespace hone::lower {
namespace {

using ir::BufferId;
using ir::Index;
using ir::NodeId;

// Returns the region of the buffers that blocks under the loop access; empty if they write nothing.
std::vector<ir::Interval> RegionUsed(ir::Program& program, absl::Span<const BufferId> buffers,
                                     NodeId loop) {
  std::vector<ir::Interval> region = ir::RegionWritten(program, buffers[0], loop);
  if (region.empty()) return region;
  for (const BufferId buffer : buffers) {
    const std::vector<ir::Interval> read = ir::RegionRead(program, buffer, loop);
    for (size_t d = 0; d < read.size(); ++d) region[d] = ir::Union(program, region[d], read[d]);
  }
  return region;
}

}  // namespace

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

ir::Program CompactBuffers(const ir::Program& original) {
  ir::Program program = original;
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const std::vector<BufferId> buffers = WrittenTogether(program, static_cast<BufferId>(b));
    const bool done = *std::min_element(buffers.begin(), buffers.end()) < buffers[0];
    const bool kept = std::any_of(buffers.begin(), buffers.end(), [&](BufferId buffer) {
      return program.buffers[buffer].input || program.buffers[buffer].output;
    });
    if (done || kept) continue;
    const std::vector<NodeId> users = UsersOf(program, buffers);
    if (users.empty()) continue;
    NodeId scope = CommonAncestor(program, users);
    // The lanes of a vectorized loop run at once, so each needs its own elements.
    while (program.IsLoop(scope) && program.node(scope).loop == ir::LoopKind::kVectorized)
      scope = program.node(scope).parent;
    // Buffers that are used by several kernels or throughout one keep their shape.
    if (scope == ir::kNoNode || !program.IsLoop(scope)) continue;
    const std::vector<ir::Interval> region = RegionUsed(program, buffers, scope);
    if (region.empty()) continue;
    const auto compacted = [&](BufferId buffer) {
      return std::find(buffers.begin(), buffers.end(), buffer) != buffers.end();
    };
    // Block indices use iteration variables, but the region uses loop variables. The block
    // therefore gets new iteration variables, bound to the region's minimum, and subtracts them.
    for (NodeId user : users) {
      std::vector<Index> minimum;
      for (size_t d = 0; d < region.size(); ++d) {
        if (region[d].min.IsConstant()) {
          minimum.push_back(region[d].min);
          continue;
        }
        const ir::Range range = program.atoms.RangeOf(region[d].min);
        const ir::AtomId var = program.atoms.AddVar("base", range.max + 1);
        program.BlockOf(user).iters.push_back({var, range.max + 1, false, region[d].min});
        minimum.push_back(Index::Of(var));
      }
      RewriteIndices(program, user, compacted, [&](ir::Block&, const ir::IndexList& indices) {
        ir::IndexList result;
        for (size_t d = 0; d < indices.size(); ++d) result.push_back(indices[d] - minimum[d]);
        return result;
      });
    }
    for (const BufferId buffer : buffers) {
      for (size_t d = 0; d < region.size(); ++d)
        program.buffers[buffer].shape[d] = region[d].extent.value;
    }
  }
  return program;
}

}  // namespace hone::lower

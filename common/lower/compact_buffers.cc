#include <algorithm>

#include "common/ir/region.h"
#include "common/lower/passes.h"

namespace hone::lower {

using ir::BufferId;
using ir::Index;
using ir::NodeId;

namespace {

// The innermost node that contains all of them.
NodeId CommonAncestor(const ir::Program& program, const std::vector<NodeId>& nodes) {
  NodeId at = program.node(nodes[0]).parent;
  while (at != ir::kNoNode && !std::all_of(nodes.begin(), nodes.end(),
                                           [&](NodeId id) { return program.IsUnder(id, at); })) {
    at = program.node(at).parent;
  }
  return at;
}

}  // namespace

ir::Program CompactBuffers(const ir::Program& original) {
  ir::Program program = original;
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const auto buffer = static_cast<BufferId>(b);
    if (program.buffers[b].input || program.buffers[b].output) continue;
    std::vector<NodeId> users = program.WritersOf(buffer);
    const std::vector<NodeId> readers = program.ReadersOf(buffer);
    users.insert(users.end(), readers.begin(), readers.end());
    // A block with several outputs has one list of indices for all of them.
    const bool tuple = std::any_of(users.begin(), users.end(), [&](NodeId id) {
      return program.BlockOf(id).outputs.size() > 1;
    });
    if (users.empty() || tuple) continue;
    NodeId scope = CommonAncestor(program, users);
    // The lanes of a vectorized loop run at once, so each needs its own elements.
    while (program.IsLoop(scope) && program.node(scope).loop == ir::LoopKind::kVectorized)
      scope = program.node(scope).parent;
    // Buffers that are used by several kernels or throughout one keep their shape.
    if (scope == ir::kNoNode || !program.IsLoop(scope)) continue;
    std::vector<ir::Interval> region = ir::RegionWritten(program, buffer, scope);
    const std::vector<ir::Interval> read = ir::RegionRead(program, buffer, scope);
    if (region.empty()) continue;
    for (size_t d = 0; d < read.size(); ++d) region[d] = ir::Union(program, region[d], read[d]);
    // Block indices use iteration variables, but the region uses loop variables. The block
    // therefore gets new iteration variables, bound to the region's minimum, and subtracts them.
    for (NodeId user : users) {
      ir::Block block = program.BlockOf(user);
      std::vector<Index> minimum;
      for (size_t d = 0; d < region.size(); ++d) {
        if (region[d].min.IsConstant()) {
          minimum.push_back(region[d].min);
          continue;
        }
        const ir::Range range = program.atoms.RangeOf(region[d].min);
        const ir::AtomId var = program.atoms.AddVar("base", range.max + 1);
        block.iters.push_back({var, range.max + 1, false, region[d].min});
        minimum.push_back(Index::Of(var));
      }
      const auto shifted = [&](const ir::IndexList& indices) {
        ir::IndexList result;
        for (size_t d = 0; d < indices.size(); ++d) result.push_back(indices[d] - minimum[d]);
        return result;
      };
      if (std::find(block.outputs.begin(), block.outputs.end(), buffer) != block.outputs.end())
        block.indices = shifted(block.indices);
      for (ir::ExprId& value : block.values) {
        value = program.pool.Rewrite(
            value,
            [&](const ir::Expr& load) {
              if (load.buffer != buffer) return ir::kNoExpr;
              const ir::IndexList indices = program.pool.IndicesOf(load);
              return program.pool.Load(buffer, load.dtype, shifted(indices));
            },
            [](const Index& index) { return index; });
      }
      program.BlockOf(user) = std::move(block);
    }
    for (size_t d = 0; d < region.size(); ++d) program.buffers[b].shape[d] = region[d].extent.value;
  }
  return program;
}

}  // namespace hone::lower

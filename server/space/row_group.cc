#include "server/space/row_group.h"

#include <algorithm>

namespace hone::space {
namespace {

using ir::NodeId;

bool Contains(absl::Span<const NodeId> blocks, NodeId block) {
  return std::find(blocks.begin(), blocks.end(), block) != blocks.end();
}

// Whether a block reduces one component whose lanes can be combined in halves.
bool ReducesLanes(const ir::Block& block) {
  return block.outputs.size() == 1 &&
         (block.reducer == ir::Reducer::kSum || block.reducer == ir::Reducer::kProd ||
          block.reducer == ir::Reducer::kMax || block.reducer == ir::Reducer::kMin);
}

// Returns the block and all open blocks that only it and other members read.
std::vector<NodeId> Members(const ir::Program& program, NodeId last,
                            absl::Span<const NodeId> open) {
  std::vector<NodeId> members = {last};
  for (bool grown = true; grown;) {
    grown = false;
    for (const NodeId block : open) {
      if (Contains(members, block)) continue;
      const std::vector<NodeId> readers = program.ReadersOf(program.BlockOf(block).outputs[0]);
      const bool inside = !readers.empty() &&
                          !program.buffers[program.BlockOf(block).outputs[0]].output &&
                          std::all_of(readers.begin(), readers.end(),
                                      [&](NodeId reader) { return Contains(members, reader); });
      if (!inside) continue;
      members.push_back(block);
      grown = true;
    }
  }
  std::vector<NodeId> ordered;
  for (const NodeId block : program.AllBlocks()) {
    if (Contains(members, block)) ordered.push_back(block);
  }
  return ordered;
}

// Whether a member reads and writes its rows at the same position.
bool KeepsToRows(const ir::Program& program, const ir::Block& block, const BlockAxes& axes,
                 int rows, absl::Span<const ir::BufferId> computed) {
  const auto own = [&](const ir::IndexList& indices) {
    if (static_cast<int>(indices.size()) < rows) return false;
    for (int d = 0; d < rows; ++d) {
      if (indices[d].SingleAtom() != block.iters[axes.spatial[d]].var) return false;
    }
    return true;
  };
  bool keeps = static_cast<int>(axes.spatial.size()) >= rows && own(block.indices);
  if (!keeps) return false;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    if (std::find(computed.begin(), computed.end(), load.buffer) == computed.end()) return;
    keeps &= own(program.pool.IndicesOf(load));
  });
  return keeps;
}

}  // namespace

BlockAxes AxesOf(const ir::Block& block) {
  BlockAxes axes;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    (block.iters[i].reduce ? axes.reduce : axes.spatial).push_back(static_cast<int>(i));
  }
  return axes;
}

bool IsContiguousAlong(const ir::Program& program, const ir::Block& block, int axis) {
  bool contiguous = false;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    const ir::IndexList& indices = program.pool.IndicesOf(load);
    const bool reduces = std::any_of(indices.begin(), indices.end(), [&](const ir::Index& index) {
      return std::any_of(block.iters.begin(), block.iters.end(), [&](const ir::BlockIter& iter) {
        return iter.reduce && program.atoms.DependsOn(index, iter.var);
      });
    });
    contiguous |= reduces && indices.back().CoeffOf(block.iters[axis].var) == 1;
  });
  return contiguous;
}

std::optional<RowGroup> FindRowGroup(const ir::Program& program, NodeId last,
                                     absl::Span<const NodeId> open) {
  RowGroup group{.blocks = Members(program, last, open), .rows = -1};
  std::vector<ir::BufferId> computed;
  for (const NodeId id : group.blocks) {
    const ir::Block& block = program.BlockOf(id);
    computed.push_back(block.outputs[0]);
    if (block.outputs.size() != 1 || !block.predicates.empty()) return std::nullopt;
    if (block.reducer == ir::Reducer::kNone) continue;
    const BlockAxes axes = AxesOf(block);
    const auto rank = static_cast<int>(axes.spatial.size());
    if (!ReducesLanes(block) || rank == 0 || (group.rows >= 0 && rank != group.rows) ||
        !block.guards.empty() || !IsContiguousAlong(program, block, axes.reduce.back())) {
      return std::nullopt;
    }
    // Lanes along the result's last axis need no sum over lanes.
    const int inner = axes.spatial.back();
    if (block.iters[inner].extent > 1 && IsContiguousAlong(program, block, inner))
      return std::nullopt;
    group.rows = rank;
    int64_t points = 1;
    for (int axis : axes.reduce) points *= block.iters[axis].extent;
    group.row_points = std::max(group.row_points, points);
  }
  if (group.rows < 0) return std::nullopt;
  for (const NodeId id : group.blocks) {
    const ir::Block& block = program.BlockOf(id);
    if (!KeepsToRows(program, block, AxesOf(block), group.rows, computed)) return std::nullopt;
  }
  return group;
}

}  // namespace hone::space

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

}  // namespace

BlockAxes AxesOf(const ir::Block& block) {
  BlockAxes axes;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    (block.iters[i].reduce ? axes.reduce : axes.spatial).push_back(static_cast<int>(i));
  }
  return axes;
}

bool KeepsToRows(const ir::Program& program, const ir::Block& block, int rows,
                 absl::Span<const ir::BufferId> computed) {
  const BlockAxes axes = AxesOf(block);
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

std::vector<NodeId> RowMembers(const ir::Program& program, NodeId last,
                               absl::Span<const NodeId> open, int rows) {
  std::vector<NodeId> members = {last};
  // Whether all readers of a block are members that read it at their own rows.
  const auto joins = [&](NodeId id) {
    const ir::Block& block = program.BlockOf(id);
    const ir::BufferId result = block.outputs[0];
    const std::vector<NodeId> readers = program.ReadersOf(result);
    return !readers.empty() && !program.buffers[result].output &&
           KeepsToRows(program, block, rows, {}) &&
           std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
             return Contains(members, reader) &&
                    KeepsToRows(program, program.BlockOf(reader), rows, {result});
           });
  };
  for (bool grown = true; grown;) {
    grown = false;
    for (const NodeId block : open) {
      if (Contains(members, block) || !joins(block)) continue;
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

bool ReducesRows(const ir::Program& program, const ir::Block& block) {
  const BlockAxes axes = AxesOf(block);
  if (!ReducesLanes(block) || axes.spatial.empty() || !block.guards.empty() ||
      !IsContiguousAlong(program, block, axes.reduce.back())) {
    return false;
  }
  // Lanes along the result's last axis need no sum over lanes.
  const int inner = axes.spatial.back();
  return block.iters[inner].extent == 1 || !IsContiguousAlong(program, block, inner);
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
  // The number of rows follows from the members.
  RowGroup group{.blocks = RowMembers(program, last, open, /*rows=*/0), .rows = -1};
  std::vector<ir::BufferId> computed;
  for (const NodeId id : group.blocks) {
    const ir::Block& block = program.BlockOf(id);
    computed.push_back(block.outputs[0]);
    if (block.outputs.size() != 1 || !block.predicates.empty()) return std::nullopt;
    if (block.reducer == ir::Reducer::kNone) continue;
    const BlockAxes axes = AxesOf(block);
    const auto rank = static_cast<int>(axes.spatial.size());
    if (!ReducesRows(program, block) || (group.rows >= 0 && rank != group.rows))
      return std::nullopt;
    group.rows = rank;
    int64_t points = 1;
    for (int axis : axes.reduce) points *= block.iters[axis].extent;
    group.row_points = std::max(group.row_points, points);
  }
  if (group.rows < 0) return std::nullopt;
  for (const NodeId id : group.blocks) {
    if (!KeepsToRows(program, program.BlockOf(id), group.rows, computed)) return std::nullopt;
  }
  return group;
}

}  // namespace hone::space

#include "server/tuner/space/row_group.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "server/tuner/space/block_kind.h"

namespace hone::space {
namespace {

using ir::NodeId;

bool Contains(absl::Span<const NodeId> blocks, NodeId block) {
  return absl::c_linear_search(blocks, block);
}

// Visits the loads of a value, except those that only compute an index.
void VisitTerms(const ir::ExprPool& pool, ir::ExprId id,
                absl::FunctionRef<void(const ir::Expr&)> visit) {
  if (id == ir::kNoExpr) return;
  const ir::Expr& expr = pool[id];
  if (expr.op == ir::Op::kLoad) return visit(expr);
  for (const ir::ExprId operand : {expr.a, expr.b, expr.c}) VisitTerms(pool, operand, visit);
}

// Whether an affine or computed index of a load varies with the block's reduction.
bool LoadVaries(const ir::Program& program, const ir::Block& block, const ir::Expr& load) {
  const auto any = [&](const ir::Expr& expr) {
    const ir::IndexList& indices = program.pool.IndicesOf(expr);
    return absl::c_any_of(indices, [&](const ir::Index& index) {
      return VariesWithReduction(program, block, index);
    });
  };
  bool varies = any(load);
  if (load.gathered < 0) return varies;
  program.pool.Visit(load.a, [&](const ir::Expr& expr) {
    if (expr.indices >= 0) varies |= any(expr);
  });
  return varies;
}

}  // namespace

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
  for (const ir::ExprId value : block.values) {
    program.pool.VisitLoads(value, [&](const ir::Expr& load) {
      if (!absl::c_linear_search(computed, load.buffer)) return;
      keeps &= own(program.pool.IndicesOf(load));
    });
  }
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
           KeepsToRows(program, block, rows, {}) && absl::c_all_of(readers, [&](NodeId reader) {
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
  if (axes.reduce.empty() || axes.spatial.empty() || !block.guards.empty() ||
      !IsContiguousAlong(program, block, axes.reduce.back())) {
    return false;
  }
  // Lanes along the result's last axis need no sum over lanes.
  const int inner = axes.spatial.back();
  return block.iters[inner].extent == 1 || !IsContiguousAlong(program, block, inner);
}

bool IsContiguousAlong(const ir::Program& program, const ir::Block& block, int axis) {
  bool contiguous = false;
  for (const ir::ExprId value : block.values) {
    VisitTerms(program.pool, value, [&](const ir::Expr& load) {
      const ir::IndexList& indices = program.pool.IndicesOf(load);
      contiguous |=
          LoadVaries(program, block, load) && indices.back().CoeffOf(block.iters[axis].var) == 1;
    });
  }
  return contiguous;
}

std::optional<RowGroup> FindRowGroup(const ir::Program& program, NodeId last,
                                     absl::Span<const NodeId> open) {
  // The number of rows follows from the members.
  RowGroup group{.blocks = RowMembers(program, last, open, /*rows=*/0), .rows = -1};
  std::vector<ir::BufferId> computed;
  for (const NodeId id : group.blocks) {
    const ir::Block& block = program.BlockOf(id);
    computed.insert(computed.end(), block.outputs.begin(), block.outputs.end());
    // Only the last member stays in its own nest, and compute_at cannot move a block with several
    // outputs.
    if ((block.outputs.size() != 1 && id != last) || !block.predicates.empty()) return std::nullopt;
    if (block.reducer == ir::Reducer::kNone) continue;
    const BlockAxes axes = AxesOf(block);
    const auto rank = static_cast<int>(axes.spatial.size());
    if (!ReducesRows(program, block) || (group.rows >= 0 && rank != group.rows))
      return std::nullopt;
    group.rows = rank;
    group.row_points = std::max(group.row_points, PointsOf(block, axes.reduce));
  }
  if (group.rows < 0) return std::nullopt;
  for (const NodeId id : group.blocks) {
    if (!KeepsToRows(program, program.BlockOf(id), group.rows, computed)) return std::nullopt;
  }
  return group;
}

}  // namespace hone::space

// How a group is found, in an example of four stages:
//
//   K[d: 12, j: 40] = sum(c: 30) X[d, c] * W[c, j]
//   S[i: 20, j: 40] = sum(d: 12) Q[i, d] * K[d, j]
//   E[i: 20, j: 40] = max(S[i, j], 0.0)
//   output Y[i: 20, e: 16] = sum(j: 40) E[i, j] * V[j, e]
//
// FindChainGroup(Y) prefers many row axes, so it begins with both axes of Y.
// 1. Rows (i, e): Y would reduce whole rows to single elements. A chain cannot end like that.
// 2. Rows (i): RowMembers() goes from Y to what it reads. Only Y reads E, at its own row i, so E is
//    a member. Only E reads S, at its own row, so S is a member, too. S reads K at K[d, j]: each
//    row of S needs all of K, so K stays outside. The members are S, E and Y.
// 3. MemberOf() accepts all three: S is a contraction with rows along i and vectors along j, along
//    which K is contiguous; E is element-wise; Y is a contraction with vectors along e.
// 4. HasChain(): E depends on the contraction S, and the contraction Y depends on E. The group is
//    found: 1 row axis, a batch of 1 (there is no other row axis), and a height of 20. One row of S
//    and E has (40 + 40) * 4 = 320 bytes (row_bytes). The vector operands, K and V, have
//    (12 * 40 + 40 * 16) * 4 = 4480 bytes (vector_bytes).
//
// No other stage ends a group: what E needs at its rows is S and E, with a single contraction, and
// S and K stand alone. The rule row_chain therefore computes S, E and Y for a block of rows at a
// time, and K before them as a whole.
#include "server/tuner/space/chain_group.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/row_group.h"

namespace hone::space {
namespace {

using ir::NodeId;

// Returns the block as a member of a chain. Returns nullopt if it cannot be one, for example if it
// is a reduction but neither a contraction nor a reduction of rows.
std::optional<ChainGroup::Member> MemberOf(const ir::Program& program, NodeId id, int rows) {
  const ir::Block& block = program.BlockOf(id);
  if (block.outputs.size() != 1 || !block.predicates.empty() || !block.guards.empty() ||
      program.buffers[block.outputs[0]].constant) {
    return std::nullopt;
  }
  ChainGroup::Member member{.block = id};
  if (block.reducer == ir::Reducer::kNone) return member;
  const BlockAxes axes = AxesOf(block);
  if (static_cast<int>(axes.spatial.size()) == rows) {
    if (!ReducesRows(program, block)) return std::nullopt;
    return member;
  }
  member.contraction = AnalyzeContraction(program, id);
  if (!member.contraction.has_value()) return std::nullopt;
  const Contraction& c = *member.contraction;
  const auto first_column = axes.spatial.begin() + rows;
  if (c.row != axes.spatial[rows - 1] ||
      std::find(axes.spatial.begin(), first_column, c.vector) != first_column ||
      !(c.vector_contiguous || HasPanels(program, c))) {
    return std::nullopt;
  }
  return member;
}

// Returns the bytes of a contraction's vector operand that one row needs.
int64_t VectorBytes(const ir::Program& program, NodeId id, const Contraction& contraction) {
  const ir::Block& block = program.BlockOf(id);
  return block.iters[contraction.vector].extent * PointsOf(block, AxesOf(block).reduce) *
         ir::DTypeBytes(program.buffers[contraction.vector_operand.buffer].dtype);
}

// Whether some contraction depends on the result of another one.
bool HasChain(const ir::Program& program, const ChainGroup& group) {
  std::set<ir::BufferId> after;  // tensors that depend on a contraction
  for (const ChainGroup::Member& member : group.members) {
    const ir::Block& block = program.BlockOf(member.block);
    bool depends = false;
    program.pool.VisitLoads(block.values[0],
                            [&](const ir::Expr& load) { depends |= after.contains(load.buffer); });
    if (depends && member.contraction.has_value()) return true;
    if (depends || member.contraction.has_value()) after.insert(block.outputs[0]);
  }
  return false;
}

std::optional<ChainGroup> ChainAtRows(const ir::Program& program, NodeId last,
                                      absl::Span<const NodeId> open, int rows) {
  const ir::Block& result = program.BlockOf(last);
  if (!KeepsToRows(program, result, rows, {})) return std::nullopt;
  const bool ends_in_rows = static_cast<int>(AxesOf(result).spatial.size()) == rows;
  if (result.reducer != ir::Reducer::kNone && ends_in_rows) return std::nullopt;
  const ir::Shape& shape = program.buffers[result.outputs[0]].shape;
  ChainGroup group{.rows = rows, .height = shape[rows - 1]};
  for (int d = 0; d + 1 < rows; ++d) group.batch *= shape[d];
  for (const NodeId id : RowMembers(program, last, open, rows)) {
    std::optional<ChainGroup::Member> member = MemberOf(program, id, rows);
    if (!member.has_value()) return std::nullopt;
    group.members.push_back(*std::move(member));
    const ir::Buffer& tensor = program.buffers[program.BlockOf(id).outputs[0]];
    if (!std::equal(shape.begin(), shape.begin() + rows, tensor.shape.begin())) return std::nullopt;
    if (group.members.back().contraction.has_value())
      group.vector_bytes += VectorBytes(program, id, *group.members.back().contraction);
    if (id == last) continue;
    int64_t columns = 1;
    for (size_t d = rows; d < tensor.shape.size(); ++d) columns *= tensor.shape[d];
    group.row_bytes += columns * ir::DTypeBytes(tensor.dtype);
  }
  if (!HasChain(program, group)) return std::nullopt;
  return group;
}

}  // namespace

const ChainGroup::Member& ChainGroup::first() const {
  return *absl::c_find_if(members,
                          [](const Member& member) { return member.contraction.has_value(); });
}

bool HasPanels(const ir::Program& program, const Contraction& contraction) {
  return contraction.vector_operand.panel_dimension >= 0 &&
         program.WritersOf(contraction.vector_operand.buffer).empty();
}

std::optional<ChainGroup> FindChainGroup(const ir::Program& program, NodeId last,
                                         absl::Span<const NodeId> open) {
  for (int rows = static_cast<int>(AxesOf(program.BlockOf(last)).spatial.size()); rows > 0;
       --rows) {
    std::optional<ChainGroup> group = ChainAtRows(program, last, open, rows);
    if (group.has_value()) return group;
  }
  return std::nullopt;
}

}  // namespace hone::space

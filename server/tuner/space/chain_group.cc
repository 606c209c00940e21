#include "server/tuner/space/chain_group.h"

#include <algorithm>
#include <set>

#include "server/tuner/space/block_axes.h"
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
  return *std::find_if(members.begin(), members.end(),
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

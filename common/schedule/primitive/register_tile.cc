#include "common/schedule/primitive/register_tile.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::Extent;
using ir::NodeId;

absl::StatusOr<RegisterTiled> RegisterTile(ir::Program& original, NodeId block, NodeId row,
                                           NodeId vector, NodeId reduce, Extent rows,
                                           Extent vectors, int64_t lanes, Extent k_unroll) {
  constexpr int64_t kMaxAccumulators = 64;
  const ir::Block& content = original.BlockOf(block);
  if (content.reducer == ir::Reducer::kNone)
    return Illegal(original, block, "register_tile: the block does not reduce");
  for (NodeId loop : {row, vector, reduce}) {
    if (!original.IsUnder(block, loop))
      return Illegal(original, loop, "register_tile: the loop is not above the block");
  }
  if (row == vector)
    return Illegal(original, row, "register_tile: the row loop is the vector loop");
  for (NodeId loop : {row, vector}) {
    if (original.IsReductionLoop(loop, content))
      return Illegal(original, loop, "register_tile: the block reduces over this loop");
  }
  if (!original.IsReductionLoop(reduce, content))
    return Illegal(original, reduce, "register_tile: the block does not reduce over this loop");
  if (rows.value < 1 || vectors.value < 1 || lanes < 1 || k_unroll.value < 1 ||
      rows.value > kMaxAccumulators || vectors.value > kMaxAccumulators / rows.value) {
    return Illegal(
        original, block,
        absl::StrCat("register_tile: a tile of ", rows.value, " x ", vectors.value,
                     " vectors; at most ", kMaxAccumulators, ", and no number may be less than 1"));
  }
  // A tile that is larger than its loop shrinks to the extent of the loop.
  ir::Program program = original;
  const auto clamp = [&](NodeId loop, Extent factor) {
    const Extent extent = program.node(loop).extent;
    return factor.value > extent.value ? extent : factor;
  };
  const Extent one_vector =
      ir::ExtentTable::Constant(std::min(lanes, program.node(vector).extent.value));
  const int64_t whole_vectors = ir::CeilDivInt(program.node(vector).extent.value, one_vector.value);
  if (vectors.value > whole_vectors) vectors = ir::ExtentTable::Constant(whole_vectors);
  const Extent infer = ir::ExtentTable::Constant(0);
  HONE_ASSIGN_OR_RETURN(const std::vector<NodeId> i,
                        Split(program, row, {infer, clamp(row, rows)}));
  HONE_ASSIGN_OR_RETURN(const std::vector<NodeId> j,
                        Split(program, vector, {infer, vectors, one_vector}));
  HONE_ASSIGN_OR_RETURN(const std::vector<NodeId> k,
                        Split(program, reduce, {infer, clamp(reduce, k_unroll)}));
  // The loops outside the tile keep their order.
  std::vector<NodeId> order;
  const std::vector<NodeId> tile = {k[1], i[1], j[1], j[2]};
  NodeId top = i[0];
  for (NodeId loop : {j[0], k[0]}) {
    if (program.IsUnder(top, loop)) top = loop;
  }
  for (NodeId loop : program.LoopsAbove(block)) {
    if (program.IsUnder(loop, top) && !absl::c_linear_search(tile, loop)) order.push_back(loop);
  }
  order.insert(order.end(), tile.begin(), tile.end());
  HONE_RETURN_IF_ERROR(Reorder(program, order));
  HONE_RETURN_IF_ERROR(Vectorize(program, j[2]));
  for (NodeId loop : {k[1], i[1], j[1]}) HONE_RETURN_IF_ERROR(Unroll(program, loop));
  original = std::move(program);
  return RegisterTiled{i[0], j[0], k[0]};
}

absl::Status ApplyRegisterTile(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId block, call.Block(0));
  HONE_ASSIGN_OR_RETURN(const NodeId row, call.Loop(1));
  HONE_ASSIGN_OR_RETURN(const NodeId vector, call.Loop(2));
  HONE_ASSIGN_OR_RETURN(const NodeId reduce, call.Loop(3));
  HONE_ASSIGN_OR_RETURN(const Extent rows, call.Int(4));
  HONE_ASSIGN_OR_RETURN(const Extent vectors, call.Int(5));
  HONE_ASSIGN_OR_RETURN(const Extent lanes, call.Int(6));
  HONE_ASSIGN_OR_RETURN(const Extent k_unroll, call.Int(7));
  HONE_ASSIGN_OR_RETURN(const RegisterTiled tiled,
                        RegisterTile(call.program(), block, row, vector, reduce, rows, vectors,
                                     lanes.value, k_unroll));
  return call.Return({tiled.row, tiled.vector, tiled.reduce});
}

}  // namespace hone::schedule

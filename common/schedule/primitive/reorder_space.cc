#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::Extent;
using ir::ExtentTable;
using ir::NodeId;

namespace {

// Splits a loop into one loop per bit of its variable, highest first; none for an extent of 1.
absl::StatusOr<std::vector<NodeId>> Bits(ir::Program& program, NodeId loop) {
  const auto extent = static_cast<uint64_t>(program.node(loop).extent.value);
  if (!std::has_single_bit(extent))
    return Illegal(program, loop, "reorder_space: morton needs an extent that is a power of two");
  const int count = std::countr_zero(extent);
  if (count < 2) return std::vector<NodeId>{loop};
  return Split(program, loop, std::vector<Extent>(count, ExtentTable::Constant(2)));
}

}  // namespace

absl::StatusOr<NodeId> ReorderSpace(ir::Program& original, NodeId outer, NodeId inner,
                                    absl::string_view order, Extent group) {
  if (order != "grouped" && order != "morton") {
    return absl::InvalidArgumentError(absl::StrCat(
        "reorder_space: unknown order '", order.substr(0, 64), "'; known: grouped, morton"));
  }
  if (original.node(inner).parent != outer || original.node(outer).children.size() != 1) {
    return Illegal(original, inner,
                   "reorder_space: the second loop is not the only content of the first");
  }
  ir::Program program = original;
  std::vector<NodeId> loops;
  if (order == "grouped") {
    const Extent extent = program.node(outer).extent;
    if (group.value < 1)
      return Illegal(original, outer,
                     absl::StrCat("reorder_space: bands of ", group.value, " iterations"));
    if (group.value > extent.value) group = extent;
    HONE_ASSIGN_OR_RETURN(const std::vector<NodeId> bands,
                          Split(program, outer, {ExtentTable::Constant(0), group}));
    loops = {bands[0], inner, bands[1]};
  } else {
    HONE_ASSIGN_OR_RETURN(const std::vector<NodeId> high, Bits(program, outer));
    HONE_ASSIGN_OR_RETURN(const std::vector<NodeId> low, Bits(program, inner));
    // The lowest bits alternate; the extra bits of the longer one come first.
    for (size_t bit = std::max(high.size(), low.size()); bit-- > 0;) {
      if (bit < high.size()) loops.push_back(high[high.size() - 1 - bit]);
      if (bit < low.size()) loops.push_back(low[low.size() - 1 - bit]);
    }
  }
  HONE_RETURN_IF_ERROR(Reorder(program, loops));
  HONE_ASSIGN_OR_RETURN(const NodeId fused, Fuse(program, loops));
  original = std::move(program);
  return fused;
}

absl::Status ApplyReorderSpace(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId outer, call.Loop(0));
  HONE_ASSIGN_OR_RETURN(const NodeId inner, call.Loop(1));
  HONE_ASSIGN_OR_RETURN(const std::string order, call.Text(2));
  HONE_ASSIGN_OR_RETURN(const Extent group, call.Int(3));
  HONE_ASSIGN_OR_RETURN(const NodeId fused,
                        ReorderSpace(call.program(), outer, inner, order, group));
  return call.Return({fused});
}

}  // namespace hone::schedule

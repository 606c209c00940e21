#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ir/clone.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/concurrency.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::Extent;
using ir::ExtentTable;
using ir::Index;
using ir::NodeId;

namespace {

constexpr size_t kMaxRanges = 16;
constexpr size_t kMaxBlocks = 256;

}  // namespace

absl::StatusOr<std::vector<NodeId>> LoopPartition(ir::Program& program, NodeId loop,
                                                  const std::vector<Extent>& at) {
  const Extent extent = program.node(loop).extent;
  if (program.node(loop).loop != ir::LoopKind::kSerial)
    return Illegal(program, loop, "loop_partition: the loop is not serial");
  if (at.empty()) return Illegal(program, loop, "loop_partition: needs at least one point");
  int64_t last = 0;
  for (const Extent& point : at) {
    if (point.value <= last || point.value >= extent.value) {
      return Illegal(program, loop,
                     absl::StrCat("loop_partition: ", point.value, " is not between ", last,
                                  " and the extent ", extent.value));
    }
    last = point.value;
  }
  const std::vector<NodeId> blocks = program.BlocksUnder(loop);
  if (at.size() >= kMaxRanges || blocks.size() * (at.size() + 1) > kMaxBlocks) {
    return Illegal(
        program, loop,
        absl::StrCat("loop_partition: ", at.size() + 1, " ranges of ", blocks.size(),
                     " blocks; at most ", kMaxRanges, " ranges and ", kMaxBlocks, " blocks"));
  }
  for (NodeId block : blocks) {
    if (program.IsReductionLoop(loop, program.BlockOf(block)) &&
        program.IsSpatialLoop(loop, program.BlockOf(block))) {
      return Illegal(
          program, loop,
          "loop_partition: the loop carries spatial and reduction iterations of a block");
    }
  }
  std::vector<NodeId> parts;
  HONE_RETURN_IF_ERROR(KeepConcurrencyLegal(program, {loop}, [&](ir::Program& p) {
    const ir::Node original = p.node(loop);
    const std::string name = p.atoms[original.var].name;
    const size_t position = p.PositionInParent(loop);
    const auto size_of = [&](size_t part) {
      const Extent end = part < at.size() ? at[part] : extent;
      if (part == 0) return end;
      return p.extents.Add(end, p.extents.Mul(at[part - 1], ExtentTable::Constant(-1)));
    };
    for (size_t part = 0; part <= at.size(); ++part) {
      const NodeId range = p.NewLoop(absl::StrCat(name, "_", part), size_of(part));
      p.node(range).annotations = original.annotations;
      parts.push_back(range);
      if (part == 0) continue;
      ir::Replacements replaced = {
          {original.var, Index::Of(p.node(range).var) + at[part - 1].value}};
      for (NodeId child : original.children)
        p.Append(range, ir::Clone(p, child, "_part", replaced));
      // The first iteration of a reduction, which stores the neutral element, is in the first
      // range.
      for (NodeId block : p.BlocksUnder(range)) {
        if (p.IsReductionLoop(range, p.BlockOf(block))) p.BlockOf(block).has_init = false;
      }
      p.Insert(original.parent, position + part, range);
    }
    p.SubstituteUnder(loop, original.var, Index::Of(p.node(parts[0]).var));
    p.node(parts[0]).children = original.children;
    for (NodeId child : original.children) p.node(child).parent = parts[0];
    p.node(original.parent).children[position] = parts[0];
    p.node(parts[0]).parent = original.parent;
    p.node(loop).children.clear();
    p.Remove(loop);
  }));
  return parts;
}

absl::Status ApplyLoopPartition(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(0));
  std::vector<Extent> at;
  for (int i = 1; i < call.operands(); ++i) {
    HONE_ASSIGN_OR_RETURN(at.emplace_back(), call.Int(i));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<NodeId> parts, LoopPartition(call.program(), loop, at));
  return call.Return(parts);
}

}  // namespace hone::schedule

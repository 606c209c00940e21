#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::Extent;
using ir::Index;
using ir::NodeId;

absl::StatusOr<std::vector<NodeId>> Split(ir::Program& program, NodeId loop,
                                          std::vector<Extent> factors) {
  const Extent extent = program.node(loop).extent;
  if (program.node(loop).loop != ir::LoopKind::kSerial)
    return Illegal(program, loop, "split: the loop is not serial");
  if (!program.node(loop).annotations.empty())
    return Illegal(program, loop, "split: the loop is annotated");
  if (factors.size() < 2) return Illegal(program, loop, "split: needs at least two factors");
  Extent inner = ir::ExtentTable::Constant(1);
  for (size_t i = factors.size() - 1; i > 0; --i) {
    if (factors[i].value < 1 || factors[i].value > extent.value) {
      return Illegal(program, loop,
                     absl::StrCat("split: factor ", factors[i].value,
                                  " is not between 1 and the extent ", extent.value));
    }
    if (inner.value > 4 * extent.value / factors[i].value + 1) {
      return Illegal(program, loop, "split: the inner factors exceed the extent");
    }
    inner = program.extents.Mul(factors[i], inner);
  }
  const int64_t needed = ir::CeilDivInt(extent.value, inner.value);
  if (factors[0].value == 0) factors[0] = program.extents.CeilDiv(extent, inner);
  if (factors[0].value != needed) {
    return Illegal(program, loop,
                   absl::StrCat("split: the outer factor is ", factors[0].value, ", but ", needed,
                                " iterations cover the extent ", extent.value));
  }
  const std::string name = program.atoms[program.node(loop).var].name;
  std::vector<NodeId> loops;
  loops.reserve(factors.size());
  Index value;
  for (size_t i = 0; i < factors.size(); ++i) {
    loops.push_back(program.NewLoop(absl::StrCat(name, "_", i), factors[i]));
    value *= factors[i].value;
    value += Index::Of(program.node(loops.back()).var);
  }
  const ir::AtomId var = program.node(loop).var;
  const NodeId parent = program.node(loop).parent;
  const size_t position = program.PositionInParent(loop);
  const std::vector<NodeId> blocks = program.BlocksUnder(loop);
  program.SubstituteUnder(loop, var, value);
  if (factors[0].value * inner.value > extent.value) {
    for (NodeId block : blocks) program.BlockOf(block).predicates.push_back({value, extent.value});
  }
  program.node(loops.back()).children = program.node(loop).children;
  for (NodeId child : program.node(loops.back()).children)
    program.node(child).parent = loops.back();
  for (size_t i = 0; i + 1 < loops.size(); ++i) program.Append(loops[i], loops[i + 1]);
  program.node(parent).children[position] = loops[0];
  program.node(loops[0]).parent = parent;
  program.node(loop).children.clear();
  program.Remove(loop);
  return loops;
}

absl::Status ApplySplit(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(0));
  std::vector<Extent> factors;
  factors.reserve(call.operands());
  for (int i = 1; i < call.operands(); ++i) {
    HONE_ASSIGN_OR_RETURN(factors.emplace_back(), call.Int(i));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<NodeId> loops,
                        Split(call.program(), loop, std::move(factors)));
  return call.Return(loops);
}

}  // namespace hone::schedule

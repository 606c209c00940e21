#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/primitive/tensor_nest.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

absl::StatusOr<NodeId> AddUnitLoop(ir::Program& program, NodeId node) {
  const NodeId parent = program.node(node).parent;
  if (InTensorNest(program, parent))
    return Illegal(program, node, "add_unit_loop: the place is in a tensor nest");
  if (program.IsLoop(parent) && program.node(parent).loop == ir::LoopKind::kVectorized) {
    return Illegal(program, parent, "add_unit_loop: the loop around is vectorized");
  }
  const size_t position = program.PositionInParent(node);
  const NodeId unit = program.NewLoop("unit", ir::ExtentTable::Constant(1));
  program.node(parent).children[position] = unit;
  program.node(unit).parent = parent;
  program.node(node).parent = ir::kNoNode;
  program.Append(unit, node);
  return unit;
}

absl::Status ApplyAddUnitLoop(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId node, call.Node(0));
  HONE_ASSIGN_OR_RETURN(const NodeId unit, AddUnitLoop(call.program(), node));
  return call.Return({unit});
}

}  // namespace hone::schedule

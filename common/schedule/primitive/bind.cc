#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/concurrency.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::LoopKind;
using ir::NodeId;
using ir::ThreadAxis;

namespace {

absl::StatusOr<ThreadAxis> AxisFromName(absl::string_view name) {
  std::string names;
  for (int i = 1; i <= static_cast<int>(ThreadAxis::kVThread); ++i) {
    const auto axis = static_cast<ThreadAxis>(i);
    if (ir::ThreadAxisName(axis) == name) return axis;
    absl::StrAppend(&names, i > 1 ? ", " : "", ir::ThreadAxisName(axis));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("bind: unknown axis '", name.substr(0, 64), "'; known: ", names));
}

// Checks that a loop on the axis `outer` may enclose one on the axis `inner`.
absl::Status CheckPair(const ir::Program& program, NodeId at, ThreadAxis outer, ThreadAxis inner) {
  if (outer == inner && outer != ThreadAxis::kVThread) {
    return Illegal(program, at,
                   absl::StrCat("bind: ", ir::ThreadAxisName(outer), " occurs twice on the path"));
  }
  if (IsThreadAxis(outer) && IsBlockAxis(inner))
    return Illegal(program, at, "bind: a blockIdx axis would lie inside a threadIdx axis");
  return absl::OkStatus();
}

absl::Status CheckBelow(const ir::Program& program, NodeId id, ThreadAxis axis) {
  for (NodeId child : program.node(id).children) {
    const ir::Node& node = program.node(child);
    if (node.loop == LoopKind::kParallel)
      return Illegal(program, child, "bind: a loop below is parallel");
    if (node.loop == LoopKind::kBound)
      HONE_RETURN_IF_ERROR(CheckPair(program, child, axis, node.axis));
    HONE_RETURN_IF_ERROR(CheckBelow(program, child, axis));
  }
  return absl::OkStatus();
}

// The outermost loop of the nest that contains the loop. On a device, each nest is a launch.
NodeId NestOf(const ir::Program& program, NodeId loop) {
  while (program.IsLoop(program.node(loop).parent)) loop = program.node(loop).parent;
  return loop;
}

// Checks that the axis has the same extent everywhere in the nest.
absl::Status CheckExtent(const ir::Program& program, NodeId id, ThreadAxis axis, int64_t extent) {
  const ir::Node& node = program.node(id);
  if (node.loop == LoopKind::kBound && node.axis == axis && axis != ThreadAxis::kVThread &&
      node.extent.value != extent) {
    return Illegal(program, id,
                   absl::StrCat("bind: ", ir::ThreadAxisName(axis), " has ", node.extent.value,
                                " here, not ", extent));
  }
  for (NodeId child : node.children)
    HONE_RETURN_IF_ERROR(CheckExtent(program, child, axis, extent));
  return absl::OkStatus();
}

}  // namespace

absl::Status Bind(ir::Program& program, NodeId loop, absl::string_view name) {
  HONE_ASSIGN_OR_RETURN(const ThreadAxis axis, AxisFromName(name));
  if (program.node(loop).loop != LoopKind::kSerial)
    return Illegal(program, loop, "bind: the loop is not serial");
  if (!program.node(loop).annotations.empty())
    return Illegal(program, loop, "bind: the loop is annotated");
  for (NodeId above : program.LoopsAbove(loop)) {
    const ir::Node& node = program.node(above);
    if (node.loop == LoopKind::kParallel || node.loop == LoopKind::kVectorized) {
      return Illegal(program, above, "bind: a loop above is parallel or vectorized");
    }
    if (node.loop == LoopKind::kBound)
      HONE_RETURN_IF_ERROR(CheckPair(program, above, node.axis, axis));
  }
  HONE_RETURN_IF_ERROR(CheckBelow(program, loop, axis));
  HONE_RETURN_IF_ERROR(
      CheckExtent(program, NestOf(program, loop), axis, program.node(loop).extent.value));
  HONE_RETURN_IF_ERROR(CheckConcurrent(program, loop, "bind", /*privates=*/true,
                                       /*combines=*/IsThreadAxis(axis)));
  program.node(loop).loop = LoopKind::kBound;
  program.node(loop).axis = axis;
  return absl::OkStatus();
}

absl::Status ApplyBind(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(0));
  HONE_ASSIGN_OR_RETURN(const std::string axis, call.Text(1));
  return Bind(call.program(), loop, axis);
}

}  // namespace hone::schedule

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/concurrency.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

namespace {

// Whether the loop contains one reduction block and all its lanes belong to one element.
bool CombinesLanes(const ir::Program& program, NodeId loop) {
  const ir::Node& node = program.node(loop);
  if (node.children.size() != 1) return false;
  const ir::Block& block = program.BlockOf(node.children[0]);
  return program.IsReductionLoop(loop, block) && !program.IsSpatialLoop(loop, block);
}

}  // namespace

absl::Status Vectorize(ir::Program& program, NodeId loop) {
  constexpr int64_t kMaxLanes = 64;
  const ir::Node& node = program.node(loop);
  if (node.loop != ir::LoopKind::kSerial)
    return Illegal(program, loop, "vectorize: the loop is not serial");
  if (node.extent.value > kMaxLanes) {
    return Illegal(program, loop,
                   absl::StrCat("vectorize: ", node.extent.value, " lanes; at most ", kMaxLanes));
  }
  for (NodeId child : node.children) {
    if (!program.IsBlock(child))
      return Illegal(program, loop, "vectorize: the loop contains other loops");
  }
  if (!CombinesLanes(program, loop)) {
    HONE_RETURN_IF_ERROR(CheckConcurrent(program, loop, "vectorize", /*privates=*/false));
  }
  program.node(loop).loop = ir::LoopKind::kVectorized;
  return absl::OkStatus();
}

absl::Status ApplyVectorize(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(0));
  return Vectorize(call.program(), loop);
}

}  // namespace hone::schedule

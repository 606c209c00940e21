#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/schedule/primitive.h"
#include "common/schedule/primitive/apply.h"
#include "common/schedule/primitive/loops.h"
#include "common/schedule/replay.h"

namespace hone::schedule {

using ir::NodeId;

absl::Status Unroll(ir::Program& program, NodeId loop) {
  constexpr int64_t kMaxUnroll = 1024;
  const ir::Node& node = program.node(loop);
  if (node.loop != ir::LoopKind::kSerial)
    return Illegal(program, loop, "unroll: the loop is not serial");
  if (node.extent.value > kMaxUnroll) {
    return Illegal(
        program, loop,
        absl::StrCat("unroll: ", node.extent.value, " iterations; at most ", kMaxUnroll));
  }
  program.node(loop).loop = ir::LoopKind::kUnrolled;
  return absl::OkStatus();
}

absl::Status ApplyUnroll(Call& call) {
  HONE_ASSIGN_OR_RETURN(const NodeId loop, call.Loop(0));
  return Unroll(call.program(), loop);
}

}  // namespace hone::schedule
